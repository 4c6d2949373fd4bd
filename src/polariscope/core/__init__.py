"""What everything rests on: errors, registry, options, records, files, seeds."""
