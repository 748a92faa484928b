// f8_quantise, f8_scale_update, and f8_matmul around a product that the library does: every 8-bit
// number is one of bf16 and f32, so operands are looked up in a table and multiplied as those.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "halftone/core/align.h"
#include "halftone/core/convert.h"
#include "halftone/core/cpu_features.h"
#include "halftone/core/threads.h"
#include "halftone/graph/ir/builder.h"
#include "halftone/kernels/cpu/simd/convert.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

constexpr int64_t kBlock = 4096;

// Of core/dtype.h, for what is finite in few steps: the bits below the mantissa are rounded off as
// they are in a sum with a number whose last bit has the weight of the last one that stays.
template <typename F8>
struct F8Layout;
template <>
struct F8Layout<F8E4M3> {
  static constexpr int kMantissa = 3, kBias = 7;
  static constexpr float kMax = 448, kMinNormal = 0x1p-6F, kSubnormalShift = 0x1p14F;
};
template <>
struct F8Layout<F8E5M2> {
  static constexpr int kMantissa = 2, kBias = 15;
  static constexpr float kMax = 57344, kMinNormal = 0x1p-14F, kSubnormalShift = 0x1p7F;
};

template <typename F8>
uint8_t RoundFinite(float x) {
  using L = F8Layout<F8>;
  constexpr int kDropped = 23 - L::kMantissa;
  const uint32_t sign = std::bit_cast<uint32_t>(x) >> 24 & 0x80;
  const float magnitude = std::min(std::abs(x), L::kMax);
  const auto bits = std::bit_cast<uint32_t>(magnitude);
  const uint32_t normal =
      ((bits + (1u << (kDropped - 1)) - 1 + (bits >> kDropped & 1)) >> kDropped) -
      ((127 - L::kBias) << L::kMantissa);
  const uint32_t subnormal = std::bit_cast<uint32_t>(magnitude + L::kSubnormalShift) -
                             std::bit_cast<uint32_t>(L::kSubnormalShift);
  return static_cast<uint8_t>(sign | (magnitude < L::kMinNormal ? subnormal : normal));
}

// The largest |x| as bits, in whose order NaN is above all numbers.
template <typename F8>
uint32_t QuantiseRun(const float* x, float scale, uint8_t* y, int64_t n) {
  uint32_t amax = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[i]) & 0x7FFFFFFF;
    amax = std::max(amax, bits);
    y[i] = bits < 0x7F800000 ? RoundFinite<F8>(x[i] * scale) : F8(x[i]).bits;
  }
  return amax;
}

class F8QuantiseKernel : public Kernel {
 public:
  explicit F8QuantiseKernel(const ir::Node& node)
      : from_(node.input_type(0).dtype),
        widen_(from_ == DType::kF32 ? nullptr : ConvertLoop(from_, DType::kF32)),
        run_(node.output_type().dtype == DType::kF8E4M3 ? QuantiseRun<F8E4M3>
                                                        : QuantiseRun<F8E5M2>),
        n_(node.input_type(0).num_elements()) {
    workspace_bytes_ = static_cast<size_t>((n_ + kBlock - 1) / kBlock) * sizeof(uint32_t);
  }

  void Run(const KernelArgs& args) override {
    const float scale = *static_cast<const float*>(args.inputs[1]);
    const char* x = static_cast<const char*>(args.inputs[0]);
    auto* y = static_cast<uint8_t*>(args.outputs[0]);
    auto* largest = static_cast<uint32_t*>(args.workspace);
    const auto element = static_cast<int64_t>(SizeOf(from_));
    const int64_t blocks = (n_ + kBlock - 1) / kBlock;
    ParallelFor(0, blocks, 1, [&](int64_t first, int64_t last) {
      std::array<float, kBlock> wide;
      for (int64_t b = first; b < last; ++b) {
        const int64_t begin = b * kBlock, count = std::min(kBlock, n_ - begin);
        const void* from = x + begin * element;
        if (widen_ != nullptr) widen_(from, wide.data(), count);
        const float* of_block = widen_ != nullptr ? wide.data() : static_cast<const float*>(from);
        largest[b] = run_(of_block, scale, y + begin, count);
      }
    });
    const uint32_t amax = blocks == 0 ? 0 : *std::max_element(largest, largest + blocks);
    *static_cast<float*>(args.outputs[1]) = 1 / scale;
    *static_cast<float*>(args.outputs[2]) = std::bit_cast<float>(amax);
  }

 private:
  DType from_;
  ConvertFn widen_;
  uint32_t (*run_)(const float* x, float scale, uint8_t* y, int64_t n);
  int64_t n_;
};

class F8ScaleUpdateKernel : public Kernel {
 public:
  explicit F8ScaleUpdateKernel(const ir::Node& node)
      : length_(node.input_type(0).num_elements()),
        largest_(std::ldexp(MaxFinite(node.attrs().GetDType("to")),
                            -static_cast<int>(node.attrs().GetInt("margin")))) {}

  // Outputs may be the inputs in place.
  void Run(const KernelArgs& args) override {
    const auto* before = static_cast<const float*>(args.inputs[0]);
    auto* after = static_cast<float*>(args.outputs[0]);
    const float scale = *static_cast<const float*>(args.inputs[1]);
    const float amax = *static_cast<const float*>(args.inputs[2]);
    std::memmove(after + 1, before, static_cast<size_t>(length_ - 1) * sizeof(float));
    after[0] = std::isfinite(amax) ? amax : 0;
    const float seen = *std::max_element(after, after + length_);
    // The exponent of a quotient of floats is found without a logarithm.
    const int wanted = seen > 0 ? std::ilogb(largest_ / static_cast<double>(seen)) : 0;
    *static_cast<float*>(args.outputs[1]) =
        seen > 0 ? std::ldexp(1.0F, std::clamp(wanted, -60, 60)) : scale;
  }

 private:
  int64_t length_;
  double largest_;
};

// The values of all patterns as T: float or BF16.
template <typename T>
std::array<T, 256> ValuesOf(DType f8) {
  std::array<T, 256> values;
  for (int i = 0; i < 256; ++i) {
    const auto bits = static_cast<uint8_t>(i);
    values[i] = T(f8 == DType::kF8E4M3 ? F8E4M3BitsToF32(bits) : F8E5M2BitsToF32(bits));
  }
  return values;
}

template <typename T>
class F8MatmulKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelRegistry& r,
                                                        const ir::Node& node) {
    const bool ta = node.attrs().GetBool("transpose_a"), tb = node.attrs().GetBool("transpose_b");
    const Shape& b = node.input_type(1).shape;
    const int64_t inner = b[tb ? 1 : 0], columns = b[tb ? 0 : 1];
    const int64_t rows = columns == 0 ? 0 : node.output_type().num_elements() / columns;
    constexpr DType kDType = DTypeOf<T>::kValue;
    ir::Graph graph("f8_matmul");
    ir::Builder builder(&graph);
    const ir::Expr product = builder.Op(
        "matmul",
        {builder.Input("a", {kDType, ta ? Shape{inner, rows} : Shape{rows, inner}}),
         builder.Input("b", {kDType, b})},
        {{"transpose_a", ta}, {"transpose_b", tb}, {"out", kDType == DType::kF32 ? "" : "f32"}});
    HT_RETURN_IF_ERROR(builder.status());
    HT_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
                        r.Select(*product.value().node, Device::Kind::kCpu));
    return std::unique_ptr<Kernel>(new F8MatmulKernel(node, std::move(kernel), rows, columns));
  }

  void Run(const KernelArgs& args) override {
    char* room = static_cast<char*>(args.workspace);
    T* a = reinterpret_cast<T*>(room);
    T* b = reinterpret_cast<T*>(room + b_at_);
    auto* bias = reinterpret_cast<float*>(room + bias_at_);
    Widen(a_values_, args.inputs[0], a, a_size_);
    Widen(b_values_, args.inputs[1], b, b_size_);
    float* y = narrow_ == nullptr ? static_cast<float*>(args.outputs[0])
                                  : reinterpret_cast<float*>(room + y_at_);
    const void* inputs[] = {a, b};
    void* outputs[] = {y};
    inner_->Run({inputs, outputs, room + inner_at_, args.state});
    const float inverse =
        *static_cast<const float*>(args.inputs[2]) * *static_cast<const float*>(args.inputs[3]);
    if (bias_dtype_.has_value()) {
      ConvertElements(args.inputs[4], *bias_dtype_, bias, DType::kF32, columns_);
    }
    char* const to = static_cast<char*>(args.outputs[0]);
    ParallelFor(0, rows_, std::max<int64_t>(1, kElementwiseGrain / std::max<int64_t>(1, columns_)),
                [&](int64_t first, int64_t last) {
                  for (int64_t row = first; row < last; ++row) {
                    float* const of_row = y + row * columns_;
                    for (int64_t i = 0; i < columns_; ++i) {
                      of_row[i] = of_row[i] * inverse + (bias_dtype_.has_value() ? bias[i] : 0);
                    }
                    if (narrow_ != nullptr) {
                      narrow_(of_row, to + row * columns_ * to_element_, columns_);
                    }
                  }
                });
  }

 private:
  F8MatmulKernel(const ir::Node& node, std::unique_ptr<Kernel> inner, int64_t rows, int64_t columns)
      : inner_(std::move(inner)),
        rows_(rows),
        columns_(columns),
        a_size_(node.input_type(0).num_elements()),
        b_size_(node.input_type(1).num_elements()),
        a_values_(ValuesOf<T>(node.input_type(0).dtype)),
        b_values_(ValuesOf<T>(node.input_type(1).dtype)) {
    const DType to = node.output_type().dtype;
    to_element_ = static_cast<int64_t>(SizeOf(to));
    if (to != DType::kF32) narrow_ = ConvertLoop(DType::kF32, to);
    if (node.num_inputs() > 4) bias_dtype_ = node.input_type(4).dtype;
    Take(a_size_ * sizeof(T));
    b_at_ = Take(b_size_ * sizeof(T));
    bias_at_ = Take(columns * sizeof(float));
    y_at_ = Take(narrow_ == nullptr ? 0 : rows * columns * sizeof(float));
    inner_at_ = Take(inner_->workspace_bytes());
    implementation_ = inner_->name() + "/" + inner_->implementation();
  }

  size_t Take(size_t bytes) {
    const size_t at = workspace_bytes_;
    workspace_bytes_ += AlignUp(bytes, kBufferAlignment);
    return at;
  }

  static void Widen(const std::array<T, 256>& values, const void* from, T* to, int64_t n) {
    const auto* bits = static_cast<const uint8_t*>(from);
    ParallelFor(0, n, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = values[bits[i]];
    });
  }

  std::unique_ptr<Kernel> inner_;
  int64_t rows_, columns_, a_size_, b_size_, to_element_ = 0;
  std::array<T, 256> a_values_, b_values_;
  std::optional<DType> bias_dtype_;
  ConvertFn narrow_ = nullptr;
  size_t b_at_ = 0, bias_at_ = 0, y_at_ = 0, inner_at_ = 0;
};

}  // namespace

void Register_cpu_f8(KernelRegistry& r) {
  AddNativeCandidate<F8QuantiseKernel>(r, "scalar", "f8_quantise",
                                       {DType::kF32, DType::kF16, DType::kBF16}, PlainThroughout);
  AddNativeCandidate<F8ScaleUpdateKernel>(r, "scalar", "f8_scale_update", {DType::kF32}, nullptr);
  AddNativeCandidate(r, "widened", "f8_matmul", {DType::kF8E4M3, DType::kF8E5M2}, PlainThroughout,
                     [&r](const ir::Node& node) {
                       return CpuFeatures::Get().fast_bf16 ? F8MatmulKernel<BF16>::Create(r, node)
                                                           : F8MatmulKernel<float>::Create(r, node);
                     });
}

}  // namespace halftone::kernels
