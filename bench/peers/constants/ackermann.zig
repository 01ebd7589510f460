const Count = struct { v: i32, c: i32 };
fn ack(m: i32, n: i32, c: i32) Count {
    if (m == 0) return .{ .v = n + 1, .c = c + 1 };
    if (n == 0) return ack(m - 1, 1, c + 1);
    const r = ack(m, n - 1, c + 1);
    return ack(m - 1, r.v, r.c);
}
const result = blk: {
    @setEvalBranchQuota(4_000_000_000);
    break :blk ack(3, SIZE, 0);
};
export fn answer() i32 {
    return (result.v + result.c) & 127;
}
