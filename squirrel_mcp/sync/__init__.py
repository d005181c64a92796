"""The store as seen from here: what it answers is checked before anything is believed or shown."""
