//go:build !race

package redislock

const underRace = false
