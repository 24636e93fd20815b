//! Users and roles: merged by the server, reported by name, never left behind in part.
