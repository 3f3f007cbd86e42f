"""What rules know about single things: probes, log lines, host names, selectors, schedules. No rule, no incident."""
