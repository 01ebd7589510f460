// Peer of binomial.impala in Zig: L options at a time, TS time steps in one sweep over the tree, called by binomial.cpp.
const L = 16;
const STEPS = 64;
const TS = 8;
const v = @import("options.zig").Of(L);
const F = v.F;
const all = v.all;

export fn kernel(sa: [*]const f32, xa: [*]const f32, ta: [*]const f32, ra: [*]const f32, va: [*]const f32, noalias out: [*]f32, lo: i32, hi: i32) void {
    @setFloatMode(.optimized);
    var i: usize = @intCast(lo);
    while (i < @as(usize, @intCast(hi))) : (i += L) {
        const S = v.load(sa, i);
        const X = v.load(xa, i);
        const dt = v.load(ta, i) * all(1.0 / @as(f32, STEPS));
        const lu = v.load(va, i) * @sqrt(dt);
        const u = v.exp(lu);
        const d = all(1) / u;
        const discount = v.exp(v.load(ra, i) * dt);
        const p = (discount - d) / (u - d);
        const rd = all(1) / discount;
        const a = (all(1) - p) * rd;
        const b = p * rd;
        var values: [STEPS + TS]F = undefined;
        for (0..STEPS) |j| {
            const power: f32 = @floatFromInt(2 * @as(i32, @intCast(j)) - STEPS);
            values[j] = @max(all(0), X - S * v.exp(lu * all(power)));
        }
        var j: usize = STEPS - 1;
        while (j >= TS) : (j -= TS) {
            // The previous value of each of the levels in flight.
            var c: [TS]F = undefined;
            var q: [TS]F = undefined;
            inline for (0..TS) |t| q[t] = values[t];
            inline for (0..TS) |level| {
                c[level] = q[TS - 1 - level];
                inline for (0..TS - 1 - level) |t| q[t] = @mulAdd(F, a, q[t], b * q[t + 1]);
            }
            for (TS..j + 1) |k| {
                var x = values[k];
                inline for (0..TS) |t| {
                    const y = @mulAdd(F, b, x, a * c[t]);
                    c[t] = x;
                    x = y;
                }
                values[k - TS] = x;
            }
        }
        while (j > 0) : (j -= 1) {
            for (0..j) |k| values[k] = @mulAdd(F, a, values[k], b * values[k + 1]);
        }
        out[i..][0..L].* = values[0];
    }
}
