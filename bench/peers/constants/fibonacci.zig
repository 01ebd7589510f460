const Count = struct { v: i32, c: i32 };
fn fib(n: i32, c: i32) Count {
    if (n < 2) return .{ .v = n, .c = c + 1 };
    const a = fib(n - 1, c + 1);
    const b = fib(n - 2, a.c);
    return .{ .v = a.v + b.v, .c = b.c };
}
const result = blk: {
    @setEvalBranchQuota(4_000_000_000);
    break :blk fib(SIZE, 0);
};
export fn answer() i32 {
    return (result.v + result.c) & 127;
}
