// Orders a basket, lists the orders of its customer, cancels a line and the rest, and reserves and pays:
//
//   npm ci && npm run generate && npm start http://127.0.0.1:8080 http://127.0.0.1:8081 1 2
//
// The first address is that of customers and the second one that of the staff. Item ids follow. The types are
// generated from the shop's contract.
import createClient, { type Client } from "openapi-fetch";
import type { components, paths } from "./shop.js";

const [shop, staffed, ...items] = process.argv.slice(2);
if (!shop || !staffed || items.length === 0) {
  console.error("usage: client SHOP STAFF ITEM...");
  process.exit(2);
}
// The customer's name is set by a gateway for its clients.
const connect = (baseUrl: string, subject: string) => createClient<paths>({ baseUrl, headers: { "X-Subject": subject } });
const customer = connect(shop, "ann");
const staff = connect(staffed, "bob");

// Orders a basket once, however often it has to ask. Without an answer, and after 503, it asks again under
// the same key. Any other answer is final.
async function order(shop: Client<paths>, basket: components["schemas"]["NewBasket"]) {
  const key = crypto.randomUUID();
  for (let wait = 100; ; wait = Math.min(2 * wait, 10_000)) {
    try {
      const { data, error, response } = await shop.POST("/api/v1/orders", {
        body: basket, params: { header: { "Idempotency-Key": key } }, signal: AbortSignal.timeout(30_000),
      });
      if (data) return data;
      if (response.status !== 503) throw new Refused(JSON.stringify(error));
    } catch (failed) {
      if (failed instanceof Refused) throw failed;
    }
    await new Promise((resume) => setTimeout(resume, wait));
  }
}

class Refused extends Error {}

const sold = await order(customer, { lines: items.map((item) => ({ item_id: Number(item), quantity: 1 })) });
console.log("ordered", sold.lines.length, "lines");

let listed = 0;
for (let before: string | undefined; ; ) {
  const { data, error } = await customer.GET("/api/v1/orders", { params: { query: { before } } });
  if (!data || !("orders" in data)) throw new Error(JSON.stringify(error));
  listed += data.orders.length;
  if (!data.next) break;
  before = data.orders.at(-1)!.id;
}
console.log("listed", listed, "orders");

const header = () => ({ "Idempotency-Key": crypto.randomUUID() });
const line = await staff.POST("/api/v1/orders/{order}/lines/{item}/cancellation", {
  params: { path: { order: sold.id, item: sold.lines[0].item_id }, header: header() },
});
if (!line.data) throw new Error(JSON.stringify(line.error));
const rest = await staff.POST("/api/v1/orders/{order}/cancellation", { params: { path: { order: sold.id }, header: header() } });
if (!rest.data?.cancelled_at) throw new Error(JSON.stringify(rest.error));
console.log("cancelled a line, and the rest");

const lines = items.map((item) => ({ item_id: Number(item), quantity: 1 }));
const held = await customer.POST("/api/v1/reservations", { body: { lines, seconds: 600 }, params: { header: header() } });
if (!held.data) throw new Error(JSON.stringify(held.error));
const path = { reservation: held.data.id };
const paying = await staff.POST("/api/v1/reservations/{reservation}/payment", { params: { path } });
if (!paying.data) throw new Error(JSON.stringify(paying.error));
const paid = await staff.POST("/api/v1/reservations/{reservation}/confirmation", { params: { path }, body: { reference: crypto.randomUUID() } });
if (!paid.data?.order_id) throw new Error(JSON.stringify(paid.error));
console.log("reserved", paid.data.lines.length, "lines, and paid");
