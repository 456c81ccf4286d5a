package shop

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
)

// getLive says that the process answers. It checks no dependency, because a restart of the shop
// does not repair its database.
func (s *Shop) getLive(c *gin.Context) {
	c.JSON(http.StatusOK, gin.H{"status": "live"})
}

// getReady says whether requests should be sent here. If not, it names the missing dependency. The
// reason is in the log.
func (s *Shop) getReady(c *gin.Context) {
	if s.draining.Load() {
		refuse(c, errDraining)
		return
	}
	if names := s.health.missing(); len(names) > 0 {
		refuse(c, refusal{unavailable, "missing: " + strings.Join(names, ", ")})
		return
	}
	c.JSON(http.StatusOK, gin.H{"status": "ready", "name": s.Name, "strategy": s.Strategy.Name})
}
