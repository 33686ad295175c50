package postgres

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tailwater/tailwater/connectors"
)

// restorePaused takes up which tables people have paused.
func (c *snapshots) restorePaused() error {
	h, ok := c.start.history.(connectors.PauseHistory)
	if !ok {
		return nil
	}
	topics, err := h.Paused()
	if err != nil {
		return fmt.Errorf("read which snapshots are paused: %w", err)
	}
	for _, topic := range topics {
		c.m.Pause(topic)
		c.start.logger.Info("snapshots of the table are paused; tailwater snapshot resume lets them go on", "source", c.start.options.Source, "table", topic)
	}
	return nil
}

// Control pauses, resumes or stops the reading of captured tables. It returns the
// topics for which that changed anything. A pause outlives restarts; it ends behind
// the chunk at hand, and changes are streamed all the while.
func (c *snapshots) Control(action connectors.SnapshotAction, topics []string) (changed []string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, topic := range topics {
		if c.tables[topic] == nil {
			return nil, fmt.Errorf("table %s is not captured", topic)
		}
	}
	for _, topic := range topics {
		st := c.m.Table(topic)
		switch {
		case action == connectors.SnapshotPause && !st.Paused:
			c.m.Pause(topic)
		case action == connectors.SnapshotResume && st.Paused:
			c.m.Resume(topic)
			delete(c.pace, topic)
		case action == connectors.SnapshotStop && st.Running:
			c.m.Stop(topic)
		default:
			continue
		}
		changed = append(changed, topic)
		c.start.logger.Info("snapshot "+string(action), "source", c.start.options.Source, "table", topic, "run", st.Run)
	}
	signal(c.ready)
	if action == connectors.SnapshotStop {
		return changed, nil
	}
	return changed, c.savePaused()
}

// savePaused makes the paused tables durable; the caller holds mu.
func (c *snapshots) savePaused() error {
	h, ok := c.start.history.(connectors.PauseHistory)
	if !ok {
		return errors.New("this history keeps no pauses")
	}
	var topics []string
	for topic := range c.tables {
		if c.m.Table(topic).Paused {
			topics = append(topics, topic)
		}
	}
	slices.Sort(topics)
	return h.SetPaused(topics)
}

// SnapshotControl pauses, resumes or stops snapshots of tables, named by their topics.
func (s *source) SnapshotControl(action connectors.SnapshotAction, topics []string) (changed []string, err error) {
	c, ok := s.coordinator.(interface {
		Control(connectors.SnapshotAction, []string) ([]string, error)
	})
	if !ok {
		return nil, errors.New("this source reads no tables")
	}
	return c.Control(action, topics)
}
