// Peer of mandelbrot.impala in Zig: L lanes at a time, called by mandelbrot.cpp.
const W = 1536;
const L = 32;
const F = @Vector(L, f32);
const I = @Vector(L, i32);

export fn kernel(x0: f32, y0: f32, dx: f32, dy: f32, most: i32, out: [*]i32, lo: i32, hi: i32) void {
    @setFloatMode(.optimized);
    const lanes: F = comptime blk: {
        var l: [L]f32 = undefined;
        for (0..L) |i| l[i] = i;
        break :blk l;
    };
    for (@intCast(lo)..@intCast(hi)) |y| {
        const ci: F = @splat(y0 + @as(f32, @floatFromInt(y)) * dy);
        var x: usize = 0;
        while (x < W) : (x += L) {
            const cr = @as(F, @splat(x0)) + (lanes + @as(F, @splat(@floatFromInt(x)))) * @as(F, @splat(dx));
            var zr = cr;
            var zi = ci;
            var count: I = @splat(0);
            var n: i32 = 0;
            while (n < most) : (n += 1) {
                const r2 = zr * zr;
                const m2 = zi * zi;
                const active = (r2 + m2) <= @as(F, @splat(4));
                if (!@reduce(.Or, active)) break;
                count += @select(i32, active, @as(I, @splat(1)), @as(I, @splat(0)));
                zi = @as(F, @splat(2)) * zr * zi + ci;
                zr = cr + r2 - m2;
            }
            out[y * W + x ..][0..L].* = count;
        }
    }
}
