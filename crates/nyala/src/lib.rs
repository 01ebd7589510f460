//! The driver as a library (source in; program, function, object, report out), the pipelines, and the command.
