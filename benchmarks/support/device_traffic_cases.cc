#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/str_replace.h"
#include "halftone/benchmarks/support/device_cases.h"
#include "halftone/benchmarks/support/kernel_case.h"

namespace halftone::benchmarks {
namespace {

// Dtypes to time a family in.
enum Precisions { kBoth, kOnlyF16, kOnlyF32 };

// ROWS in the text is the extent that is chosen.
struct TrafficFamily {
  const char* name;
  Precisions precisions;
  const char* inputs;
  const char* nodes;
};

constexpr TrafficFamily kFamilies[] = {
    {"copy", kOnlyF16, "%a: T[ROWS,4096]", "%y = reshape(%a) {shape=[ROWS,64,64]}"},
    {"add", kBoth, "%a: T[ROWS,4096], %b: T[ROWS,4096]", "%y = add(%a, %b)"},
    {"add/bias", kOnlyF16, "%a: T[ROWS,4096], %b: T[4096]", "%y = add(%a, %b)"},
    {"gelu", kBoth, "%a: T[ROWS,4096]", "%y = gelu(%a)"},
    {"gelu_grad", kOnlyF16, "%a: T[ROWS,4096], %b: T[ROWS,4096]", "%y = gelu_grad(%a, %b)"},
    {"fused/mul_add_relu", kBoth, "%a: T[ROWS,4096], %b: T[ROWS,4096], %c: T[ROWS,4096]",
     "%y = fused(%a, %b, %c) {body=\"relu(add(mul(%0, %1), %2))\"}"},
    {"cast/to_f32", kOnlyF16, "%a: T[ROWS,4096]", "%y = cast(%a) {to=f32}"},
    {"cast/to_f16", kOnlyF32, "%a: T[ROWS,4096]", "%y = cast(%a) {to=f16}"},
    {"where", kBoth, "%c: bool[ROWS,4096], %a: T[ROWS,4096], %b: T[ROWS,4096]",
     "%y = where(%c, %a, %b)"},
    {"transpose", kBoth, "%a: T[ROWS,4096]", "%y = transpose(%a) {perm=[1,0]}"},
    {"transpose/heads", kOnlyF16, "%a: T[ROWS,256,12,64]", "%y = transpose(%a) {perm=[0,2,1,3]}"},
    {"slice/of_qkv", kOnlyF16, "%a: T[ROWS,2304]",
     "%y = slice(%a) {starts=[0,768], limits=[ROWS,1536], strides=[1,1]}"},
    {"relayout", kOnlyF16, "%a: T[ROWS,64,56,56]",
     "%y = relayout(%a) {to=\"nhwc\"} : T[ROWS,64,56,56]{nhwc}"},
    {"dropout", kBoth, "%a: T[ROWS,4096]", "%y = dropout(%a) {p=0.1, seed=7}"},
    {"dropout/nhwc", kOnlyF16, "%x: T[ROWS,64,56,56]",
     "%a = relayout(%x) {to=\"nhwc\"} : T[ROWS,64,56,56]{nhwc}\n%y = dropout(%a) {p=0.1, seed=7} : "
     "T[ROWS,64,56,56]{nhwc}"},
    {"sum/rows", kBoth, "%a: T[ROWS,1024]", "%y = sum(%a) {axes=[1]}"},
    {"sum/columns", kBoth, "%a: T[ROWS,1024]", "%y = sum(%a) {axes=[0]}"},
    {"conv2d_grad_bias/nhwc", kOnlyF16, "%x: T[ROWS,64,56,56]",
     "%a = relayout(%x) {to=\"nhwc\"} : T[ROWS,64,56,56]{nhwc}\n%y = conv2d_grad_bias(%a)"},
    {"softmax/1024", kBoth, "%a: T[ROWS,1024]", "%y = softmax(%a)"},
    {"softmax_grad/1024", kBoth, "%a: T[ROWS,1024], %b: T[ROWS,1024]", "%y = softmax_grad(%a, %b)"},
    {"cross_entropy/50257", kBoth, "%a: T[ROWS,50257], %t: i64[ROWS]",
     "%y, %s = cross_entropy(%a, %t)"},
    {"cross_entropy_grad/50257", kBoth,
     "%a: T[ROWS,50257], %t: i64[ROWS], %s: f32[2,ROWS], %d: f32[]",
     "%y = cross_entropy_grad(%a, %t, %s, %d)"},
    {"layer_norm/768", kBoth, "%a: T[ROWS,768], %b: f32[768], %c: f32[768]",
     "%y, %m, %r = layer_norm(%a, %b, %c)"},
    {"layer_norm_grad/768", kBoth,
     "%a: T[ROWS,768], %d: T[ROWS,768], %b: f32[768], %m: f32[ROWS], %r: f32[ROWS]",
     "%x, %y, %z = layer_norm_grad(%a, %d, %b, %m, %r)"},
    {"batch_norm/nhwc", kBoth,
     "%x: T[ROWS,64,56,56], %g: f32[64], %b: f32[64], %m: f32[64], %v: f32[64]",
     "%a = relayout(%x) {to=\"nhwc\"} : T[ROWS,64,56,56]{nhwc}\n%y, %s, %i, %n, %w = batch_norm(%a, "
     "%g, %b, %m, %v) : T[ROWS,64,56,56]{nhwc}, f32[64], f32[64], f32[64], f32[64]"},
    {"batch_norm_grad/nhwc", kBoth,
     "%x: T[ROWS,64,56,56], %d: T[ROWS,64,56,56], %g: f32[64], %s: f32[64], %i: f32[64]",
     "%a = relayout(%x) {to=\"nhwc\"} : T[ROWS,64,56,56]{nhwc}\n%b = relayout(%d) {to=\"nhwc\"} : "
     "T[ROWS,64,56,56]{nhwc}\n%y, %z, %w = batch_norm_grad(%a, %b, %g, %s, %i) : "
     "T[ROWS,64,56,56]{nhwc}, f32[64], f32[64]"},
    {"batch_norm_stats/nhwc", kOnlyF16,
     "%x: T[ROWS,64,56,56], %g: f32[64], %m: f32[64], %v: f32[64]",
     "%a = relayout(%x) {to=\"nhwc\"} : T[ROWS,64,56,56]{nhwc}\n%s, %i, %n, %w, %l, %c = "
     "batch_norm_stats(%a, %g, %m, %v)"},
    {"max_pool2d/nhwc", kBoth, "%x: T[ROWS,64,112,112]",
     "%a = relayout(%x) {to=\"nhwc\"} : T[ROWS,64,112,112]{nhwc}\n%y, %i = max_pool2d(%a) "
     "{kernel=[3,3], stride=[2,2], padding=[1,1]} : T[ROWS,64,56,56]{nhwc}, "
     "u8[ROWS,64,56,56]{nhwc}"},
    {"max_pool2d_grad/nhwc", kOnlyF16, "%d: T[ROWS,64,56,56], %j: u8[ROWS,64,56,56]",
     "%a = relayout(%d) {to=\"nhwc\"} : T[ROWS,64,56,56]{nhwc}\n%i = relayout(%j) {to=\"nhwc\"} : "
     "u8[ROWS,64,56,56]{nhwc}\n%x = max_pool2d_grad(%a, %i) {kernel=[3,3], stride=[2,2], "
     "padding=[1,1], shape=[ROWS,64,112,112]} : T[ROWS,64,112,112]{nhwc}"},
    {"gather/768", kBoth, "%x: T[4096,768], %i: i64[ROWS]", "%y = gather(%x, %i)"},
    {"embedding_grad/768", kOnlyF16, "%d: T[ROWS,768], %i: i64[ROWS]",
     "%y = embedding_grad(%d, %i) {rows=4096, out=\"f32\"}"},
    {"sgd_update/momentum", kOnlyF32,
     "%p: T[ROWS,1024], %g: T[ROWS,1024], %l: f32[], %i: f32[], %c: f32[], %u: bool[], %s: i64[], "
     "%b: T[ROWS,1024]",
     "%y, %z = sgd_update(%p, %g, %l, %i, %c, %u, %s, %b) {momentum=0.9}"},
    {"adam_update", kOnlyF32,
     "%p: T[ROWS,1024], %g: T[ROWS,1024], %l: f32[], %i: f32[], %c: f32[], %u: bool[], %s: i64[], "
     "%a: T[ROWS,1024], %b: T[ROWS,1024]",
     "%x, %y, %z = adam_update(%p, %g, %l, %i, %c, %u, %s, %a, %b)"},
    {"grad_stats", kBoth, "%i: f32[], %g: T[ROWS,1024]", "%f, %n, %b = grad_stats(%i, %g)"},
};

DeviceCase WithRows(const TrafficFamily& family, DType dtype, int64_t rows) {
  const std::string extent = Concat(rows);
  return {family.name, absl::StrReplaceAll(family.inputs, {{"ROWS", extent}}),
          absl::StrReplaceAll(family.nodes, {{"ROWS", extent}}), dtype};
}

absl::StatusOr<double> BytesOf(const DeviceCase& c) {
  HT_ASSIGN_OR_RETURN(const auto graph, ParseKernelCase(c.inputs, c.nodes, c.dtype));
  return ir::CostOf(*graph->nodes().back()).bytes;
}

// The bytes are a straight line of the rows; two points tell it.
absl::StatusOr<DeviceCase> OfBytes(const TrafficFamily& family, DType dtype, double bytes) {
  HT_ASSIGN_OR_RETURN(const double one, BytesOf(WithRows(family, dtype, 1)));
  HT_ASSIGN_OR_RETURN(const double two, BytesOf(WithRows(family, dtype, 2)));
  const double rows = std::max(1.0, std::round((bytes - one) / (two - one) + 1));
  return WithRows(family, dtype, static_cast<int64_t>(rows));
}

}  // namespace

absl::StatusOr<std::vector<DeviceCase>> TrafficCases(double bytes) {
  std::vector<DeviceCase> cases;
  for (const TrafficFamily& family : kFamilies) {
    for (const DType dtype : {DType::kF16, DType::kF32}) {
      if (family.precisions == (dtype == DType::kF16 ? kOnlyF32 : kOnlyF16)) continue;
      absl::StatusOr<DeviceCase> c = OfBytes(family, dtype, bytes);
      if (!c.ok()) return Annotate(c.status(), Concat(family.name, ": "));
      cases.push_back(*std::move(c));
    }
  }
  return cases;
}

}  // namespace halftone::benchmarks
