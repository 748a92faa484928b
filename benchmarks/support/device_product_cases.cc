#include <algorithm>
#include <cmath>

#include "halftone/benchmarks/support/device_cases.h"

namespace halftone::benchmarks {
namespace {

// y [m, n] = x [m, k] w^T, w [n, k].
struct MatmulShape {
  const char* name;
  int64_t m, k, n;
};
constexpr MatmulShape kMatmuls[] = {
    {"gpt2_qkv", 8192, 768, 2304},   {"gpt2_projection", 8192, 768, 768},
    {"gpt2_fc1", 8192, 768, 3072},   {"gpt2_fc2", 8192, 3072, 768},
    {"gpt2_head", 8192, 768, 50257}, {"resnet50_fc", 256, 2048, 1000},
    {"square", 4096, 4096, 4096},    {"bert_large_fc1", 4096, 1024, 4096},
};

// x [n, c, size, size], w [o, c, kernel, kernel], padded to keep the size at stride 1.
struct ConvShape {
  const char* name;
  int64_t n, c, size, o, kernel, stride;
};
constexpr ConvShape kConvs[] = {
    {"stem_7x7", 64, 3, 224, 64, 7, 2},
    {"1x1_64to256", 64, 64, 56, 256, 1, 1},
    {"3x3_64", 64, 64, 56, 64, 3, 1},
    {"3x3_128", 64, 128, 28, 128, 3, 1},
    {"1x1_256to512_s2", 64, 256, 56, 512, 1, 2},
    {"3x3_256", 64, 256, 14, 256, 3, 1},
    {"1x1_1024to256", 64, 1024, 14, 256, 1, 1},
    {"3x3_512", 64, 512, 7, 512, 3, 1},
};

int64_t Scaled(int64_t extent, double scale, int64_t least) {
  if (scale == 1) return extent;
  const auto scaled = static_cast<int64_t>(std::round(static_cast<double>(extent) * scale / 8)) * 8;
  return std::min(extent, std::max(least, scaled));
}

std::string List(std::initializer_list<int64_t> extents) {
  std::string text = "[";
  for (const int64_t extent : extents) text += Concat(text.size() > 1 ? "," : "", extent);
  return text + "]";
}
std::string Typed(std::initializer_list<int64_t> extents) { return "T" + List(extents); }

// How one direction of a product is timed.
enum class Product { kForward, kGradInput, kGradWeight };
struct Variant {
  const char* name;
  Product product;
  DType dtype;
  bool bias = false;
  const char* extra = "";  // attributes
  bool convolution_only = false;
};
// An f32 weight gradient of 16-bit operands is what a training step with f32 weights has; `widened` is how a library
// without an engine for it computes: f32 operands, which TF32 holds exactly.
constexpr Variant kVariants[] = {
    {"forward", Product::kForward, DType::kF16},
    {"grad_input", Product::kGradInput, DType::kF16},
    {"grad_weight", Product::kGradWeight, DType::kF16},
    {"forward", Product::kForward, DType::kF32},
    {"grad_input", Product::kGradInput, DType::kF32},
    {"grad_weight", Product::kGradWeight, DType::kF32},
    {"forward_bias", Product::kForward, DType::kF16, true},
    {"grad_weight_widened", Product::kGradWeight, DType::kF32, false, ", tf32=true", true},
    {"grad_weight_to_f32", Product::kGradWeight, DType::kF16, false, ", out=\"f32\""},
};

DeviceCase MatmulCase(const MatmulShape& shape, const Variant& variant, double scale) {
  const int64_t m = Scaled(shape.m, scale, 8), k = Scaled(shape.k, scale, 8),
                n = Scaled(shape.n, scale, 8);
  const std::string x = "%x: " + Typed({m, k}), w = "%w: " + Typed({n, k}),
                    dy = "%d: " + Typed({m, n});
  DeviceCase c{Concat("matmul/", shape.name, "/", variant.name), "", "", variant.dtype, true};
  switch (variant.product) {
    case Product::kForward:
      c.inputs = Concat(x, ", ", w, variant.bias ? ", %b: " + Typed({n}) : "");
      c.nodes = Concat("%y = linear(%x, %w", variant.bias ? ", %b)" : ")");
      break;
    case Product::kGradInput:
      c.inputs = Concat(dy, ", ", w);
      c.nodes = "%y = matmul(%d, %w)";
      break;
    case Product::kGradWeight:
      c.inputs = Concat(dy, ", ", x);
      c.nodes = Concat("%y = matmul(%d, %x) {transpose_a=true", variant.extra, "}");
      break;
  }
  return c;
}

DeviceCase ConvCase(const ConvShape& shape, const Variant& variant, double scale) {
  const int64_t n = Scaled(shape.n, scale, 1), c = Scaled(shape.c, scale, 8),
                size = Scaled(shape.size, scale, 7), o = Scaled(shape.o, scale, 8),
                padding = shape.kernel / 2,
                after = (size + 2 * padding - shape.kernel) / shape.stride + 1;
  const std::string x = Typed({n, c, size, size}), dy = Typed({n, o, after, after}),
                    w = Typed({o, c, shape.kernel, shape.kernel});
  const auto channels_last = [](const char* to, const char* from, const std::string& type) {
    return Concat("%", to, " = relayout(%", from, ") {to=\"nhwc\"} : ", type, "{nhwc}\n");
  };
  const std::string attrs = Concat(" {stride=", List({shape.stride, shape.stride}),
                                   ", padding=", List({padding, padding}), variant.extra);
  DeviceCase result{Concat("conv2d/", shape.name, "/", variant.name), "", "", variant.dtype, true};
  switch (variant.product) {
    case Product::kForward:
      result.inputs = Concat("%x: ", x, ", %w: ", w, variant.bias ? ", %b: " + Typed({o}) : "");
      result.nodes = Concat(channels_last("a", "x", x), "%y = conv2d(%a, %w",
                            variant.bias ? ", %b)" : ")", attrs, "} : ", dy, "{nhwc}");
      break;
    case Product::kGradInput:
      result.inputs = Concat("%d: ", dy, ", %w: ", w);
      result.nodes = Concat(channels_last("a", "d", dy), "%y = conv2d_grad_input(%a, %w)", attrs,
                            ", shape=", List({n, c, size, size}), "} : ", x, "{nhwc}");
      break;
    case Product::kGradWeight:
      result.inputs = Concat("%x: ", x, ", %d: ", dy);
      result.nodes = Concat(channels_last("a", "x", x), channels_last("b", "d", dy),
                            "%y = conv2d_grad_weight(%a, %b)", attrs,
                            ", shape=", List({o, c, shape.kernel, shape.kernel}), "}");
      break;
  }
  return result;
}

DeviceCase AttentionCase(bool gradient, double scale) {
  const int64_t heads = Scaled(96, scale, 1), length = Scaled(1024, scale, 16);
  const std::string operand = Typed({heads, length, 64});
  DeviceCase c{gradient ? "attention_grad/gpt2" : "attention/gpt2",
               Concat("%q: ", operand, ", %k: ", operand, ", %v: ", operand),
               "%y, %s = scaled_dot_product_attention(%q, %k, %v) {scale=0.125}", DType::kF16,
               true};
  if (gradient) {
    c.inputs += Concat(", %y: ", operand, ", %s: f32", List({2, heads, length}), ", %d: ", operand);
    c.nodes =
        "%a, %b, %c = scaled_dot_product_attention_grad(%q, %k, %v, %y, %s, %d) {scale=0.125}";
  }
  return c;
}

}  // namespace

std::vector<DeviceCase> ProductCases(double scale) {
  std::vector<DeviceCase> cases = {AttentionCase(false, scale), AttentionCase(true, scale)};
  for (const Variant& variant : kVariants) {
    if (variant.convolution_only) continue;
    for (const MatmulShape& shape : kMatmuls) cases.push_back(MatmulCase(shape, variant, scale));
  }
  for (const Variant& variant : kVariants) {
    for (const ConvShape& shape : kConvs) cases.push_back(ConvCase(shape, variant, scale));
  }
  return cases;
}

}  // namespace halftone::benchmarks
