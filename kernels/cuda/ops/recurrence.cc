// lstm, gru and their gradients: for each step a product, then all of its units. The products are
// cuBLASLt's where it takes them, else our own.
#include "halftone/kernels/cuda/ops/recurrence.h"

#include <optional>
#include <utility>

#include "halftone/core/align.h"
#include "halftone/kernels/cuda/cublaslt/plan.h"
#include "halftone/kernels/cuda/ops/matmul.h"
#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

using cuda::CublasLtPlan;
using cuda::MatmulGeometry;

DType WideOf(DType dtype) { return dtype == DType::kF64 ? DType::kF64 : DType::kF32; }

// y [batch,n] = a [batch,k] times b [k,n], or [n,k] transposed.
class StepProduct {
 public:
  static MatmulGeometry Geometry(const ir::Node& node, int64_t n, int64_t k, bool transpose_b,
                                 DType output) {
    MatmulGeometry g{};
    g.m = node.input_type(0).shape[1];
    g.n = n;
    g.k = k;
    g.transpose_b = transpose_b;
    g.operand_dtype = g.b_dtype = node.input_type(0).dtype;
    g.output_dtype = output;
    g.tf32 = node.attrs().GetBool("tf32");
    return g;
  }

  static absl::StatusOr<StepProduct> Make(const MatmulGeometry& g, bool library) {
    StepProduct product;
    if (library) {
      HT_ASSIGN_OR_RETURN(CublasLtPlan plan, CublasLtPlan::Make(g));
      product.plan_.emplace(std::move(plan));
      return product;
    }
    product.params_ = {};
    product.params_.m = g.m;
    product.params_.n = g.n;
    product.params_.k = g.k;
    product.params_.a_row_stride = g.k;
    product.params_.a_column_stride = 1;
    product.params_.b_row_stride = g.transpose_b ? 1 : g.n;
    product.params_.b_column_stride = g.transpose_b ? g.k : 1;
    product.params_.batch_count = 1;
    product.operands_ = cuda::MatmulDTypeOf(g.operand_dtype);
    product.output_ = cuda::MatmulDTypeOf(g.output_dtype);
    return product;
  }

  size_t workspace_bytes() const { return plan_ ? plan_->workspace_bytes() : 0; }

  absl::Status Run(const void* a, const void* b, void* y, void* workspace,
                   cudaStream_t stream) const {
    if (plan_) return plan_->Run({.a = a, .b = b}, y, workspace, stream);
    cuda::MatmulParams params = params_;
    params.a = a;
    params.b = b;
    params.y = y;
    HT_CUDA_RETURN_IF_ERROR(cuda::LaunchMatmul(params, operands_, output_, stream));
    return absl::OkStatus();
  }

 private:
  std::optional<CublasLtPlan> plan_;
  cuda::MatmulParams params_{};
  cuda::MatmulDType operands_ = cuda::MatmulDType::kF32, output_ = cuda::MatmulDType::kF32;
};

// Sizes, where the steps lie, and arrays in the workspace.
class RecurrenceKernel : public CudaKernel {
 protected:
  RecurrenceKernel(const ir::Node& node, int64_t gates)
      : gates_(gates),
        steps_(node.input_type(0).shape[0]),
        batch_(node.input_type(0).shape[1]),
        hidden_(node.input_type(0).shape[2] / gates),
        features_(node.input_type(1).shape[1]),
        dtype_(node.input_type(0).dtype),
        reverse_(node.attrs().GetBool("reverse")) {}

  // Where step i of time lies.
  int64_t At(int64_t i) const { return reverse_ ? steps_ - 1 - i : i; }
  // Step `position` of an array [T,B,columns] of `dtype`.
  const void* Step(const void* x, int64_t position, int64_t columns, DType dtype) const {
    return static_cast<const char*>(x) + position * Bytes(columns, dtype);
  }
  void* Step(void* x, int64_t position, int64_t columns, DType dtype) const {
    return static_cast<char*>(x) + position * Bytes(columns, dtype);
  }
  int64_t Bytes(int64_t columns, DType dtype) const {
    return batch_ * columns * static_cast<int64_t>(SizeOf(dtype));
  }
  // Room for [B,columns] in the workspace.
  size_t Take(int64_t columns, DType dtype) {
    return TakeBytes(static_cast<size_t>(Bytes(columns, dtype)));
  }
  size_t TakeBytes(size_t bytes) {
    const size_t at = workspace_bytes_;
    workspace_bytes_ += AlignUp(bytes, kBufferAlignment);
    return at;
  }
  static char* Room(const KernelArgs& args, size_t at) {
    return static_cast<char*>(args.workspace) + at;
  }
  cuda::RecurrenceParams params() const { return {dtype_, batch_, hidden_}; }
  DType wide() const { return WideOf(dtype_); }

  int64_t gates_, steps_, batch_, hidden_, features_;
  DType dtype_;

 private:
  bool reverse_;
};

// Those of a node: of its weights, and of its projection if it has one.
struct Products {
  StepProduct weights;
  std::optional<StepProduct> projection;
  size_t workspace_bytes() const {
    return std::max(weights.workspace_bytes(), projection ? projection->workspace_bytes() : 0);
  }
};

// w multiplies h; the projection what the cells give.
struct Forward {
  static MatmulGeometry Weights(const ir::Node& node) {
    const Shape& w = node.input_type(1).shape;
    return StepProduct::Geometry(node, w[0], w[1], true, WideOf(node.input_type(0).dtype));
  }
  static MatmulGeometry Projection(const ir::Node& node, int port) {
    const Shape& w = node.input_type(port).shape;
    return StepProduct::Geometry(node, w[0], w[1], true, node.input_type(0).dtype);
  }
};
// w multiplies the gradient of the gates; the projection that of h.
struct Backward {
  static MatmulGeometry Weights(const ir::Node& node) {
    const Shape& w = node.input_type(1).shape;
    return StepProduct::Geometry(node, w[1], w[0], false, WideOf(node.input_type(0).dtype));
  }
  static MatmulGeometry Projection(const ir::Node& node, int port) {
    const Shape& w = node.input_type(port).shape;
    return StepProduct::Geometry(node, w[1], w[0], false, WideOf(node.input_type(0).dtype));
  }
};

class LstmKernel : public RecurrenceKernel {
 public:
  using Direction = Forward;
  static constexpr int kGates = 4, kProjection = 4;
  LstmKernel(const ir::Node& node, Products products)
      : RecurrenceKernel(node, kGates),
        products_(std::move(products)),
        product_at_(Take(4 * hidden_, wide())),
        m_at_(products_.projection ? Take(hidden_, dtype_) : 0),
        library_at_(TakeBytes(products_.workspace_bytes())) {}

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    void* const product = Room(args, product_at_);
    const void *h = args.inputs[2], *c = args.inputs[3];
    for (int64_t i = 0; i < steps_; ++i) {
      const int64_t t = At(i);
      HT_RETURN_IF_ERROR(
          products_.weights.Run(h, args.inputs[1], product, Room(args, library_at_), stream));
      void* const y = Step(args.outputs[0], t, features_, dtype_);
      void* const new_c = Step(args.outputs[2], t, hidden_, wide());
      const cuda::LstmCellArrays arrays{Step(args.inputs[0], t, 4 * hidden_, dtype_),
                                        product,
                                        c,
                                        Step(args.outputs[3], t, 4 * hidden_, dtype_),
                                        new_c,
                                        products_.projection ? Room(args, m_at_) : y};
      HT_CUDA_RETURN_IF_ERROR(cuda::LaunchLstmCell(params(), arrays, stream));
      if (products_.projection) {
        HT_RETURN_IF_ERROR(products_.projection->Run(arrays.m, args.inputs[kProjection], y,
                                                     Room(args, library_at_), stream));
      }
      h = y;
      c = new_c;
    }
    HT_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(args.outputs[1], c,
                                            static_cast<size_t>(Bytes(hidden_, wide())),
                                            cudaMemcpyDeviceToDevice, stream));
    return absl::OkStatus();
  }

 private:
  Products products_;
  size_t product_at_, m_at_, library_at_;
};

class LstmGradKernel : public RecurrenceKernel {
 public:
  using Direction = Backward;
  static constexpr int kGates = 4, kProjection = 6;
  LstmGradKernel(const ir::Node& node, Products products)
      : RecurrenceKernel(node, kGates),
        products_(std::move(products)),
        product_at_(Take(features_, wide())),
        dm_at_(products_.projection ? Take(hidden_, wide()) : 0),
        library_at_(TakeBytes(products_.workspace_bytes())) {}

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    void* const room = Room(args, library_at_);
    const void *dx = nullptr, *product = nullptr, *dc = args.inputs[5];
    const auto multiply = [&]() -> absl::Status {
      product = Room(args, product_at_);
      return products_.weights.Run(dx, args.inputs[1], Room(args, product_at_), room, stream);
    };
    for (int64_t i = steps_ - 1; i >= 0; --i) {
      const int64_t t = At(i);
      if (dx != nullptr) HT_RETURN_IF_ERROR(multiply());
      cuda::LstmCellGradArrays arrays{
          product,
          Step(args.inputs[4], t, features_, dtype_),
          Step(args.outputs[3], t, features_, dtype_),
          Step(args.inputs[0], t, 4 * hidden_, dtype_),
          Step(args.inputs[3], t, hidden_, wide()),
          i == 0 ? args.inputs[2] : Step(args.inputs[3], At(i - 1), hidden_, wide()),
          dc,
          args.outputs[2],
          Step(args.outputs[0], t, 4 * hidden_, dtype_)};
      if (products_.projection) {
        HT_CUDA_RETURN_IF_ERROR(cuda::LaunchAddToProduct(dtype_, batch_ * features_, product,
                                                         arrays.dh, false, arrays.dh_sum, stream));
        HT_RETURN_IF_ERROR(products_.projection->Run(arrays.dh_sum, args.inputs[kProjection],
                                                     Room(args, dm_at_), room, stream));
        arrays.product = Room(args, dm_at_);
        arrays.dh = nullptr;
      }
      HT_CUDA_RETURN_IF_ERROR(cuda::LaunchLstmCellGrad(params(), arrays, stream));
      dx = arrays.dx;
      dc = arrays.new_dc;
    }
    HT_RETURN_IF_ERROR(multiply());
    HT_CUDA_RETURN_IF_ERROR(cuda::LaunchAddToProduct(dtype_, batch_ * features_, product, nullptr,
                                                     true, args.outputs[1], stream));
    return absl::OkStatus();
  }

 private:
  Products products_;
  size_t product_at_, dm_at_, library_at_;
};

class GruKernel : public RecurrenceKernel {
 public:
  using Direction = Forward;
  static constexpr int kGates = 3, kProjection = -1;
  GruKernel(const ir::Node& node, Products products)
      : RecurrenceKernel(node, kGates),
        products_(std::move(products)),
        biased_(node.num_inputs() > 3),
        product_at_(Take(3 * hidden_, wide())),
        state_at_(IsLow(dtype_) ? Take(hidden_, wide()) : 0),
        library_at_(TakeBytes(products_.workspace_bytes())) {}

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    void* const product = Room(args, product_at_);
    const void *h = args.inputs[2], *state = nullptr;
    for (int64_t i = 0; i < steps_; ++i) {
      const int64_t t = At(i);
      HT_RETURN_IF_ERROR(
          products_.weights.Run(h, args.inputs[1], product, Room(args, library_at_), stream));
      const cuda::GruCellArrays arrays{Step(args.inputs[0], t, 3 * hidden_, dtype_),
                                       product,
                                       biased_ ? args.inputs[3] : nullptr,
                                       h,
                                       state,
                                       Step(args.outputs[1], t, 3 * hidden_, dtype_),
                                       Step(args.outputs[2], t, hidden_, dtype_),
                                       Step(args.outputs[0], t, hidden_, dtype_),
                                       IsLow(dtype_) ? Room(args, state_at_) : nullptr};
      HT_CUDA_RETURN_IF_ERROR(cuda::LaunchGruCell(params(), arrays, stream));
      h = arrays.h;
      state = arrays.new_state;
    }
    return absl::OkStatus();
  }

 private:
  Products products_;
  bool biased_;
  size_t product_at_, state_at_, library_at_;
};

class GruGradKernel : public RecurrenceKernel {
 public:
  using Direction = Backward;
  static constexpr int kGates = 3, kProjection = -1;
  GruGradKernel(const ir::Node& node, Products products)
      : RecurrenceKernel(node, kGates),
        products_(std::move(products)),
        product_at_(Take(hidden_, wide())),
        kept_at_(Take(hidden_, wide())),
        library_at_(TakeBytes(products_.workspace_bytes())) {}

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    const void *ds = nullptr, *product = nullptr, *kept = nullptr;
    const auto multiply = [&]() -> absl::Status {
      product = Room(args, product_at_);
      return products_.weights.Run(ds, args.inputs[1], Room(args, product_at_),
                                   Room(args, library_at_), stream);
    };
    for (int64_t i = steps_ - 1; i >= 0; --i) {
      const int64_t t = At(i);
      if (ds != nullptr) HT_RETURN_IF_ERROR(multiply());
      const cuda::GruCellGradArrays arrays{
          product,
          Step(args.inputs[5], t, hidden_, dtype_),
          Step(args.inputs[0], t, 3 * hidden_, dtype_),
          Step(args.inputs[4], t, hidden_, dtype_),
          i == 0 ? args.inputs[2] : Step(args.inputs[3], At(i - 1), hidden_, dtype_),
          kept,
          Room(args, kept_at_),
          Step(args.outputs[0], t, 3 * hidden_, dtype_),
          Step(args.outputs[2], t, 3 * hidden_, dtype_)};
      HT_CUDA_RETURN_IF_ERROR(cuda::LaunchGruCellGrad(params(), arrays, stream));
      ds = arrays.ds;
      kept = arrays.new_kept;
    }
    HT_RETURN_IF_ERROR(multiply());
    HT_CUDA_RETURN_IF_ERROR(cuda::LaunchAddToProduct(dtype_, batch_ * hidden_, product, kept, true,
                                                     args.outputs[1], stream));
    return absl::OkStatus();
  }

 private:
  Products products_;
  size_t product_at_, kept_at_, library_at_;
};

// Whether the library takes the products of each step, which lie where the step before ends.
template <typename K>
absl::Status SupportsLibrary(const ir::Node& node) {
  HT_RETURN_IF_ERROR(PlainInputs(node));
  std::vector<MatmulGeometry> products = {K::Direction::Weights(node)};
  if (K::kProjection > 0 && node.num_inputs() > K::kProjection) {
    products.push_back(K::Direction::Projection(node, K::kProjection));
  }
  const auto size = static_cast<int64_t>(SizeOf(node.input_type(0).dtype));
  constexpr int64_t kAlignment = CublasLtPlan::kAlignment;
  for (const MatmulGeometry& g : products) {
    HT_RETURN_IF_ERROR(CublasLtPlan::Supports(g));
    if (g.m * g.k * size % kAlignment != 0 || g.m * g.n * size % kAlignment != 0) {
      return Unimplemented("steps do not begin at multiples of ", kAlignment, " bytes");
    }
  }
  return absl::OkStatus();
}

template <typename K>
absl::StatusOr<std::unique_ptr<Kernel>> CreateRecurrence(const ir::Node& node, bool library) {
  HT_ASSIGN_OR_RETURN(StepProduct weights, StepProduct::Make(K::Direction::Weights(node), library));
  Products products{std::move(weights), std::nullopt};
  if (K::kProjection > 0 && node.num_inputs() > K::kProjection) {
    HT_ASSIGN_OR_RETURN(StepProduct projection,
                        StepProduct::Make(K::Direction::Projection(node, K::kProjection), library));
    products.projection.emplace(std::move(projection));
  }
  return std::unique_ptr<Kernel>(new K(node, std::move(products)));
}

template <typename K>
void AddRecurrence(KernelRegistry& r, const std::string& op) {
  AddCudaCandidate(r, "cublaslt", op, ir::kFloats, SupportsLibrary<K>,
                   [](const ir::Node& node) { return CreateRecurrence<K>(node, true); });
  AddCudaCandidate(r, "native", op, ir::kFloats, PlainInputs,
                   [](const ir::Node& node) { return CreateRecurrence<K>(node, false); });
}

}  // namespace

void Register_cuda_recurrence(KernelRegistry& r) {
  AddRecurrence<LstmKernel>(r, "lstm");
  AddRecurrence<LstmGradKernel>(r, "lstm_grad");
  AddRecurrence<GruKernel>(r, "gru");
  AddRecurrence<GruGradKernel>(r, "gru_grad");
}

}  // namespace halftone::kernels
