//! The partial evaluator: filters, run and halt, budget, memo, the record of every decision.
