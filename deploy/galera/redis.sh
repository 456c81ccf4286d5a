#!/bin/sh
# Starts Redis or its Sentinel: redis.sh redis, or redis.sh sentinel. ADDRESS is that of this Redis, and FIRST that
# of the primary at the first start. They are numbers: a Sentinel that looks for the name of a container that has
# ended does nothing else for ten seconds.
#
# The configuration, with the passwords, comes through a pipe or is in a file system in memory: arguments can
# be seen by all processes.
set -eu
umask 077
sentinels="sentinel-1 sentinel-2 sentinel-3"

# primary is the server that a Sentinel takes for the primary. A name that is not there yet takes long.
primary() {
	for sentinel in $sentinels; do
		timeout 2 redis-cli -h "$sentinel" -p 26379 sentinel get-master-addr-by-name shop 2>/dev/null | head -1 | grep . && return
	done
	echo "$FIRST"
}

case $1 in
redis)
	of=$(primary)
	{
		# It holds locks alone: none survives its server, and none is evicted.
		printf '%s\n' 'save ""' 'appendonly no' 'maxmemory 256mb' 'maxmemory-policy noeviction' 'protected-mode no' 'dir /data' \
			'user default off' \
			"user shop on >$REDIS_SHOP_PASSWORD ~stock:* ~{stock:* &redislock:* +@all -@dangerous -@admin" \
			"user sentinel on >$REDIS_SENTINEL_PASSWORD allchannels +multi +slaveof +ping +exec +subscribe +config|rewrite +role +publish +info +client|setname +client|kill +script|kill +psync +replconf" \
			'masteruser sentinel' "masterauth $REDIS_SENTINEL_PASSWORD"
		[ "$of" = "$ADDRESS" ] || echo "replicaof $of 6379"
	} >/data/redis.conf
	exec redis-server /data/redis.conf
	;;
sentinel)
	printf '%s\n' 'protected-mode no' 'dir /data' \
		"sentinel monitor shop $(primary) 6379 2" 'sentinel auth-user shop sentinel' \
		"sentinel auth-pass shop $REDIS_SENTINEL_PASSWORD" 'sentinel down-after-milliseconds shop 2000' \
		'sentinel failover-timeout shop 6000' >/data/sentinel.conf
	exec redis-sentinel /data/sentinel.conf
	;;
esac
