// Peer of black_scholes.impala in Zig: L options at a time, called by black_scholes.cpp.
const L = 32;
const v = @import("options.zig").Of(L);
const F = v.F;
const all = v.all;

inline fn normal(x: F) F {
    @setFloatMode(.optimized);
    const l = @abs(x);
    const k = all(1) / @mulAdd(F, l, all(0.2316419), all(1));
    var p = all(1.330274429);
    inline for (.{ -1.821255978, 1.781477937, -0.356563782, 0.31938153 }) |c| p = @mulAdd(F, p, k, all(c));
    const w = p * k * all(0.39894228040) * v.exp(l * l * all(-0.5));
    return @select(f32, x > all(0), all(1) - w, w);
}

export fn kernel(s: [*]const f32, x: [*]const f32, t: [*]const f32, r: [*]const f32, vol: [*]const f32, noalias out: [*]f32, lo: i32, hi: i32) void {
    @setFloatMode(.optimized);
    var i: usize = @intCast(lo);
    while (i < @as(usize, @intCast(hi))) : (i += L) {
        const S = v.load(s, i);
        const X = v.load(x, i);
        const T = v.load(t, i);
        const R = v.load(r, i);
        const V = v.load(vol, i);
        const q = V * @sqrt(T);
        const d1 = (v.log(S / X) + (R + V * V * all(0.5)) * T) / q;
        const d2 = d1 - q;
        out[i..][0..L].* = S * normal(d1) - X * v.exp(-R * T) * normal(d2);
    }
}
