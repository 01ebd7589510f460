// Code that black_scholes.zig and binomial.zig share: exponential and logarithm of vectors, as in options.h.
pub fn Of(comptime L: comptime_int) type {
    return struct {
        pub const F = @Vector(L, f32);
        const I = @Vector(L, i32);
        const U = @Vector(L, u5);

        pub inline fn all(x: f32) F {
            return @splat(x);
        }
        pub inline fn load(p: [*]const f32, i: usize) F {
            return p[i..][0..L].*;
        }
        inline fn ints(x: i32) I {
            return @splat(x);
        }
        pub inline fn exp(x: F) F {
            @setFloatMode(.optimized);
            const n = @floor(@mulAdd(F, x, all(1.44269504), all(0.5)));
            const g = @mulAdd(F, -n, all(0.693145752), x);
            const f = @mulAdd(F, -n, all(1.42860677e-6), g);
            var p = all(1.9875691500e-4);
            inline for (.{ 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1, 1.0, 1.0 }) |c| p = @mulAdd(F, p, f, all(c));
            const most = @max(@min(n, all(127)), all(-126));
            const scale: I = (@as(I, @intFromFloat(most)) + ints(127)) << @as(U, @splat(23));
            return p * @as(F, @bitCast(scale));
        }
        // The logarithm of positive numbers that are not denormal.
        pub inline fn log(x: F) F {
            @setFloatMode(.optimized);
            const bits: I = @bitCast(x);
            // The mantissa from 0.75 to 1.5.
            const e = (bits - ints(0x3f400000)) >> @as(U, @splat(23));
            const m: F = @bitCast(bits - (e << @as(U, @splat(23))));
            const f = m - all(1);
            var p = all(7.0376836292e-2);
            inline for (.{ -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1 }) |c| p = @mulAdd(F, p, f, all(c));
            const f2 = f * f;
            p = p * f2 * f - f2 * all(0.5) + f;
            return @mulAdd(F, @as(F, @floatFromInt(e)), all(0.69314718056), p);
        }
    };
}
