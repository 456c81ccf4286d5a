#!/usr/bin/env bash
# Kills the writer of Galera, and later the primary of Redis, while eight customers buy from the shops of
# docker-compose.galera.yml. It compares what they were answered with what the database has.
#
#   deploy/galera/failover.sh [galera.env]
#
# Exit codes: 0 nobody was lied to, nothing was oversold, and both times the shops sold again within 10 s;
# 1 something else; 2 it could not be tried.
set -euo pipefail
cd "$(dirname "$0")/../.."
secrets=${1:-galera.env}
[ -f "$secrets" ] || { echo "failover.sh: no file $secrets: make it as docker-compose.galera.yml says" >&2; exit 2; }
galera() { docker compose -f docker-compose.galera.yml --env-file "$secrets" "$@"; }
# sql asks a node that is there.
sql() {
	for node in galera-1 galera-2 galera-3; do
		galera exec -T "$node" mariadb stocklock --batch --skip-column-names --execute "$1" 2>/dev/null && return
	done
	return 1
}

stock=100000
address=$(galera port haproxy 8080) && item=$(sql "INSERT INTO items (name, stock) VALUES ('failover', $stock) RETURNING id") ||
	{ echo "failover.sh: no HAProxy, or no node of Galera, answers: start it as docker-compose.galera.yml says" >&2; exit 2; }
answers=$(mktemp)
end=$answers.end
customers=
killed=
# clean_up starts what was killed, too. It withdraws the item, which customers could buy.
clean_up() {
	touch "$end"
	wait $customers 2>/dev/null || true
	rm -f "$answers" "$end"
	sql "UPDATE items SET withdrawn = COALESCE(withdrawn, 0) + stock, stock = 0 WHERE id = $item" || true
	[ -z "$killed" ] || galera start $killed >/dev/null 2>&1
}
trap clean_up EXIT

case $(date +%N) in
*N) nanoseconds() { perl -MTime::HiRes=time -e 'printf "%d", time * 1e9'; } ;; # the date of BSD
*) nanoseconds() { date +%s%N; } ;;
esac
subject_header=$(sed -n 's/^SHOP_SUBJECT_HEADER=//p' "$secrets") # without which the shops refuse a sale
buy() { # what each line says: when the answer came in nanoseconds, its status, and the request
	for ((n = 0; ; n++)); do
		[ ! -e "$end" ] || return 0
		request=failover-$item-$1-$n
		status=$(curl --silent --max-time 10 --output /dev/null --write-out '%{http_code}' --data '{"quantity":1}' \
			--header 'Content-Type: application/json' --header "X-Request-Id: $request" --header "${subject_header:-X-Subject}: customer-$1-$n" \
			"http://$address/api/v1/items/$item/orders") || true
		echo "$(nanoseconds) $status $request" >>"$answers"
	done
}
for customer in 1 2 3 4 5 6 7 8; do
	buy $customer &
	customers="$customers $!"
done

sold() { awk '$2 == 201 { n++ } END { print n + 0 }' "$answers"; }
# hundred_more waits for so many sales.
hundred_more() {
	local limit=$((SECONDS + 60)) wanted=$(($(sold) + 100))
	until [ "$(sold)" -ge "$wanted" ]; do
		[ $SECONDS -lt $limit ] || { echo "failover.sh: not a hundred sales in a minute" >&2; exit 1; }
		sleep 0.1
	done
}
late=
# kill_one kills a container, and says for how long nothing was sold.
kill_one() {
	local before gap
	before=$(sold)
	killed="$killed $1"
	galera kill --signal KILL "$1" >/dev/null 2>&1
	hundred_more
	gap=$(awk '$2 == 201 { print $1 }' "$answers" | sort -n | tail -n +"$before" |
		awk 'NR > 1 && $1 - last > gap { gap = $1 - last } { last = $1 } END { printf "%.1f", gap / 1e9 }')
	echo "$1 killed after $before sales: nothing was sold for $gap s"
	awk "BEGIN { exit !($gap > 10) }" && late=yes
	return 0
}

hundred_more
writer=$(for node in galera-1 galera-2 galera-3; do # the one with the shops' connections
	[ "$(galera exec -T "$node" mariadb --batch --skip-column-names --execute \
		"SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'shop'" 2>/dev/null || echo 0)" -eq 0 ] || echo "$node"
done)
[ "$(wc -w <<<"$writer")" -eq 1 ] || { echo "failover.sh: the shops have connections to these nodes: ${writer:-none}: want one" >&2; exit 1; }
kill_one "$writer"
primary=$(galera exec -T sentinel-1 redis-cli -p 26379 sentinel get-master-addr-by-name shop | sed -n 1p)
primary=$(for server in redis-1 redis-2; do # by its address
	[ "$(galera exec -T $server hostname --ip-address)" != "$primary" ] || echo $server
done)
kill_one "$primary"
touch "$end"
wait $customers

# The orders by their requests, beside the answers.
sql "SELECT request_id FROM orders WHERE item_id = $item" | sort >"$end"
lied=$(awk '$2 == 201 { print $3 }' "$answers" | sort | comm -23 - "$end" | wc -l)
unknown=$(awk '$2 != 201 { print $3 }' "$answers" | sort | comm -12 - "$end" | wc -l)
remaining=$(sql "SELECT stock FROM items WHERE id = $item")
orders=$(wc -l <"$end")
oversold=$((orders + remaining - stock))
echo "answered as sold $(sold), orders $orders ($unknown without such an answer), lied $lied, oversold $oversold, $remaining of $stock left"
[ -z "$late" ] && [ "$lied" -eq 0 ] && [ "$oversold" -eq 0 ]
