"""Schedules that are proposed: everything that a block touches in one layout, with loops that match."""
