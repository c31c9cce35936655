//! How Go spells the published types as JSON, read from the struct tags.
