// A shop that sells limited stock, in three ways. WAY says which: read-then-write, lease or conditional.
const http = require('http')
const crypto = require('crypto')
const mysql = require('mysql2/promise')
const Redis = require('ioredis')

const env = process.env
const redis = new Redis(env.REDIS_URL)
const pool = mysql.createPool({
  host: env.MYSQL_HOST, port: Number(env.MYSQL_PORT), user: env.MYSQL_USER,
  password: env.MYSQL_PASSWORD, database: env.MYSQL_DATABASE,
})
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

function order(db, item, customer) {
  return db.execute('INSERT INTO orders (item_id, customer) VALUES (?, ?)', [item, customer])
}

// Broken: two sales can read the same stock.
async function readThenWrite(db, item, customer) {
  const [[row]] = await db.execute('SELECT stock FROM items WHERE id = ?', [item])
  if (row.stock < 1) return 'sold_out'
  await db.execute('UPDATE items SET stock = ? WHERE id = ?', [row.stock - 1, item])
  await order(db, item, customer)
  return 'sold'
}

const release = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"

// Broken where the lease ends before the work: nobody looks at it again.
async function lease(db, item, customer) {
  const key = `lock:${item}`
  const me = crypto.randomUUID()
  const until = Date.now() + 5000
  while (!(await redis.set(key, me, 'PX', 10000, 'NX'))) {
    if (Date.now() > until) return 'busy'
    await pause(10)
  }
  try {
    const answer = await readThenWrite(db, item, customer)
    await db.commit()
    return answer
  } finally {
    await redis.eval(release, 1, key, me)
  }
}

// Mended: one statement looks and takes.
async function conditional(db, item, customer) {
  const [result] = await db.execute('UPDATE items SET stock = stock - 1 WHERE id = ? AND stock >= 1', [item])
  if (result.affectedRows === 0) return 'sold_out'
  await order(db, item, customer)
  return 'sold'
}

const ways = { 'read-then-write': readThenWrite, lease, conditional }
const status = { sold: 201, sold_out: 409, busy: 503 }

async function buy(item, customer) {
  const db = await pool.getConnection()
  try {
    await db.beginTransaction()
    const answer = await ways[env.WAY](db, item, customer)
    await db.commit()
    return answer
  } catch (error) {
    await db.rollback()
    throw error
  } finally {
    db.release()
  }
}

function reply(response, code, answer) {
  response.writeHead(code, { 'Content-Type': 'application/json' })
  response.end(JSON.stringify({ answer }))
}

const server = http.createServer(async (request, response) => {
  if (request.method === 'GET') return reply(response, 200, 'ready')
  try {
    let body = ''
    for await (const chunk of request) body += chunk
    const item = Number(request.url.split('/')[2])
    const answer = await buy(item, JSON.parse(body).customer)
    reply(response, status[answer], answer)
  } catch (error) {
    reply(response, 500, error.message)
  }
})
server.listen(Number(env.PORT), '127.0.0.1')
