// Peer of bench/rays/trace.impala: Embree 4. `embree FOLDER SCENE QUALITY MODE THREADS`, where QUALITY is `low` (by Morton codes), `medium`
// (binned SAH) or `high` (with spatial splits). Prints names and nanoseconds: MODE `trace` for each ray, `robust` the same in robust
// mode, `build` for building. `hits` writes hits beside the rays instead.
// Python's package `embreex` brings the library without headers, so what is used of them is declared here.
#include "../vectorize/timing.h"
#include <cstdlib>
#include <ctime>
struct alignas(16) RTCRay {
    float org_x, org_y, org_z, tnear, dir_x, dir_y, dir_z, time, tfar;
    unsigned mask, id, flags;
};
struct alignas(16) RTCHit {
    float Ng_x, Ng_y, Ng_z, u, v;
    unsigned primID, geomID, instID[1], instPrimID[1];
};
struct RTCRayHit {
    RTCRay ray;
    RTCHit hit;
};
struct alignas(64) RTCRay16 {
    float org_x[16], org_y[16], org_z[16], tnear[16], dir_x[16], dir_y[16], dir_z[16], time[16], tfar[16];
    unsigned mask[16], id[16], flags[16];
};
struct alignas(64) RTCHit16 {
    float Ng_x[16], Ng_y[16], Ng_z[16], u[16], v[16];
    unsigned primID[16], geomID[16], instID[1][16], instPrimID[1][16];
};
struct RTCRayHit16 {
    RTCRay16 ray;
    RTCHit16 hit;
};
struct Arguments {
    int flags;
    int feature_mask;
    void *context, *filter, *function;
    float more[4];
};
struct Bounds {
    float lower_x, lower_y, lower_z, align0, upper_x, upper_y, upper_z, align1;
};
typedef struct RTCDeviceTy *RTCDevice;
typedef struct RTCSceneTy *RTCScene;
typedef struct RTCGeometryTy *RTCGeometry;
extern "C" {
RTCDevice rtcNewDevice(const char *);
int rtcGetDeviceError(RTCDevice);
ssize_t rtcGetDeviceProperty(RTCDevice, int);
RTCScene rtcNewScene(RTCDevice);
void rtcReleaseScene(RTCScene);
void rtcSetSceneBuildQuality(RTCScene, int);
void rtcSetSceneFlags(RTCScene, int);
RTCGeometry rtcNewGeometry(RTCDevice, int);
void rtcSetGeometryBuildQuality(RTCGeometry, int);
void *rtcSetNewGeometryBuffer(RTCGeometry, int, unsigned, int, size_t, size_t);
void rtcCommitGeometry(RTCGeometry);
unsigned rtcAttachGeometry(RTCScene, RTCGeometry);
void rtcCommitScene(RTCScene);
void rtcIntersect1(RTCScene, RTCRayHit *, Arguments *);
void rtcOccluded1(RTCScene, RTCRay *, Arguments *);
void rtcIntersect16(const int *, RTCScene, RTCRayHit16 *, Arguments *);
void rtcOccluded16(const int *, RTCScene, RTCRay16 *, Arguments *);
}
static const int TRIANGLE = 0, INDEX = 0, VERTEX = 1, FLOAT3 = 0x9003, UINT3 = 0x5003;

struct Ray {
    float org[3], tmin, dir[3], tmax;
};
struct Hit {
    float t;
    unsigned prim;
};
template <class T> std::vector<T> read(const std::string &path) {
    FILE *f = fopen(path.c_str(), "rb");
    if (!f) perror(path.c_str()), exit(1);
    fseek(f, 0, SEEK_END);
    std::vector<T> all((size_t)ftell(f) / sizeof(T));
    rewind(f);
    if (fread(all.data(), sizeof(T), all.size(), f) != all.size()) exit(1);
    fclose(f);
    return all;
}

static RTCScene scene;
static Arguments arguments(bool coherent) {
    Arguments a{};
    a.flags = coherent ? 1 << 16 : 0;
    a.feature_mask = -1;
    return a;
}
static void one(const std::vector<Ray> &rays, size_t from, size_t to, bool any, bool coherent, std::vector<Hit> &hits) {
    Arguments a = arguments(coherent);
    for (size_t i = from; i < to; i++) {
        const Ray &r = rays[i];
        RTCRayHit q;
        q.ray = {r.org[0], r.org[1], r.org[2], r.tmin, r.dir[0], r.dir[1], r.dir[2], 0, r.tmax, ~0u, 0, 0};
        q.hit.primID = q.hit.geomID = q.hit.instID[0] = q.hit.instPrimID[0] = ~0u;
        if (any) rtcOccluded1(scene, &q.ray, &a), hits[i] = {q.ray.tfar, q.ray.tfar < 0 ? 0u : ~0u};
        else rtcIntersect1(scene, &q, &a), hits[i] = {q.ray.tfar, q.hit.primID};
    }
}
static void packet(const std::vector<Ray> &rays, size_t from, size_t to, bool any, bool coherent, std::vector<Hit> &hits) {
    Arguments a = arguments(coherent);
    alignas(64) int valid[16];
    memset(valid, -1, sizeof valid);
    for (size_t b = from; b + 16 <= to; b += 16) {
        RTCRayHit16 q;
        for (int l = 0; l < 16; l++) {
            const Ray &r = rays[b + l];
            q.ray.org_x[l] = r.org[0], q.ray.org_y[l] = r.org[1], q.ray.org_z[l] = r.org[2], q.ray.tnear[l] = r.tmin;
            q.ray.dir_x[l] = r.dir[0], q.ray.dir_y[l] = r.dir[1], q.ray.dir_z[l] = r.dir[2], q.ray.tfar[l] = r.tmax;
            q.ray.time[l] = 0, q.ray.mask[l] = ~0u, q.ray.flags[l] = 0;
            q.hit.primID[l] = q.hit.geomID[l] = q.hit.instID[0][l] = q.hit.instPrimID[0][l] = ~0u;
        }
        if (any) rtcOccluded16(valid, scene, &q.ray, &a);
        else rtcIntersect16(valid, scene, &q, &a);
        for (int l = 0; l < 16; l++) hits[b + l] = {q.ray.tfar[l], any ? q.ray.tfar[l] < 0 ? 0u : ~0u : q.hit.primID[l]};
    }
}

// Time of the processor for one thread, time of a clock for several, as in `lib/ray`'s program.
static double time_now() { return n_threads == 1 ? clock() * 1e9 / CLOCKS_PER_SEC : now_ns(); }

int main(int argc, char **argv) {
    if (argc < 6) return 1;
    std::string folder = argv[1], name = argv[2], quality = argv[3], mode = argv[4];
    n_threads = std::stoi(argv[5]);
    bool builds = mode == "build";
    // The widest instructions that it may use, for comparison on machines that have wider ones.
    const char *isa = getenv("EMBREE_ISA");
    std::string limit = isa ? std::string(",max_isa=") + isa : "";
    RTCDevice device = rtcNewDevice(("threads=" + std::to_string(n_threads) + limit).c_str());
    if (!device) return 1;
    std::vector<int> mesh = read<int>(folder + "/" + name + ".mesh");
    size_t vertices = mesh[0], triangles = mesh[1];
    RTCGeometry g = rtcNewGeometry(device, TRIANGLE);
    memcpy(rtcSetNewGeometryBuffer(g, VERTEX, 0, FLOAT3, 12, vertices), &mesh[2], vertices * 12);
    memcpy(rtcSetNewGeometryBuffer(g, INDEX, 0, UINT3, 12, triangles), &mesh[2 + 3 * vertices], triangles * 12);
    int q = quality == "high" ? 2 : quality == "medium" ? 1 : 0;
    rtcSetGeometryBuildQuality(g, q);
    rtcCommitGeometry(g);
    std::vector<double> times;
    for (int i = builds ? -1 : 2; i < 3; i++) {
        double start = time_now();
        scene = rtcNewScene(device);
        rtcSetSceneFlags(scene, mode == "robust" ? 1 << 2 : 0);
        rtcSetSceneBuildQuality(scene, q);
        rtcAttachGeometry(scene, g);
        rtcCommitScene(scene);
        if (i >= 0) times.push_back(time_now() - start);
        if (i < 2) rtcReleaseScene(scene);
    }
    if (builds) {
        std::sort(times.begin(), times.end());
        std::printf("%s_%s %.0f\n", name.c_str(), quality.c_str(), times[1]);
        return 0;
    }
    for (std::string kind : {"primary", "ao", "diffuse", "random"}) {
        if (argc > 6 && kind != argv[6]) continue;
        std::vector<Ray> rays = read<Ray>(folder + "/" + name + "." + kind);
        std::vector<Hit> hits(rays.size());
        bool any = kind == "ao", coherent = kind == "primary";
        auto timed = [&](const char *how, auto run) {
            auto some = [&](int from, int to) { run(rays, from, to, any, coherent, hits); };
            each((int)rays.size() / 8, 4096, some);
            double start = time_now();
            each((int)rays.size(), 4096, some);
            double time = time_now() - start;
            std::printf("%s_%s_%s %.3f\n", name.c_str(), kind.c_str(), how, time / rays.size());
        };
        if (mode == "hits") {
            one(rays, 0, rays.size(), any, coherent, hits);
            FILE *f = fopen((folder + "/" + name + "." + kind + ".hits").c_str(), "wb");
            if (!f || fwrite(hits.data(), 8, hits.size(), f) != hits.size() || fclose(f)) return 1;
        } else {
            timed("one", one);
            timed("packet", packet);
        }
    }
    rtcReleaseScene(scene);
    if (rtcGetDeviceError(device)) return 1;
}
