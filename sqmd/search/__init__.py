"""From a query to ranked chunks: two legs, one order, and a cross-encoder where somebody wants one."""
