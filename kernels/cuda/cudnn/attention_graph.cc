#include "halftone/kernels/cuda/cudnn/attention_graph.h"

#include <limits>
#include <utility>

namespace halftone::cuda {
namespace {

using Ints = std::vector<int64_t>;

enum Uid : int64_t {
  kQ = 1,
  kK,
  kV,
  kY,
  kMax,
  kSum,
  kLogSumExp,
  kDy,
  kDelta,
  kDq,
  kDk,
  kDv,
  kScale,
  kMasked,
  kOne,
  kFirstVirtual
};

CudnnTensor Dense(cudnnDataType_t dtype, const Ints& dims) {
  CudnnTensor t{dtype, dims, Ints(dims.size(), 1)};
  for (size_t i = dims.size() - 1; i > 0; --i) t.strides[i - 1] = t.strides[i] * dims[i];
  return t;
}

// The last two axes exchanged; the elements stay where they are.
CudnnTensor Transposed(CudnnTensor t) {
  std::swap(t.dims[2], t.dims[3]);
  std::swap(t.strides[2], t.strides[3]);
  return t;
}

// A tensor of a graph under construction: where its descriptor lies among the parts.
struct Value {
  size_t part;
  CudnnTensor tensor;
};

// Adds operations one after another; the first error is kept, and status() reports it.
class Composer {
 public:
  Composer(std::vector<CudnnDescriptor>& parts, std::vector<CudnnDescriptor>& ops)
      : parts_(parts), ops_(ops) {}
  const absl::Status& status() const { return status_; }

  Value Device(const CudnnTensor& t, int64_t uid) { return Tensor(t, uid, TensorKind::kDevice); }
  Value Virtual(const CudnnTensor& t) { return Tensor(t, next_uid_++, TensorKind::kVirtual); }
  Value Number(int64_t uid) {
    return Tensor({CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}}, uid, TensorKind::kByValue);
  }

  // y = a b, of the last two axes.
  Value Product(const Value& a, const Value& b, const Value& y) {
    CudnnDescriptor how(CUDNN_BACKEND_MATMUL_DESCRIPTOR, "product");
    how.Set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    CudnnDescriptor op(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "product operation");
    op.Set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, parts_[a.part])
        .Set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, parts_[b.part])
        .Set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, parts_[y.part])
        .Set(CUDNN_ATTR_OPERATION_MATMUL_DESC, Kept(std::move(how)));
    return Added(std::move(op), y);
  }

  // Over the axes of which y has one element.
  Value Reduction(cudnnReduceTensorOp_t mode, const Value& x, const Value& y) {
    CudnnDescriptor how(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, "reduction");
    how.Set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode)
        .Set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    CudnnDescriptor op(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "reduction operation");
    op.Set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, parts_[x.part])
        .Set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, parts_[y.part])
        .Set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, Kept(std::move(how)));
    return Added(std::move(op), y);
  }

  Value Pointwise(cudnnPointwiseMode_t mode, const Value& x, const Value& y) {
    return Pointwise(mode, CUDNN_DATA_FLOAT, x, nullptr, nullptr, y);
  }
  Value Pointwise(cudnnPointwiseMode_t mode, const Value& x, const Value& b, const Value& y) {
    return Pointwise(mode, CUDNN_DATA_FLOAT, x, &b, nullptr, y);
  }

  // Elements of x as they lie, read in y's order.
  Value Reshape(const Value& x, const Value& y) {
    CudnnDescriptor op(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, "reshape operation");
    op.Set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, parts_[x.part])
        .Set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, parts_[y.part]);
    return Added(std::move(op), y);
  }

  // scores where column <= row, else the number `masked`.
  Value Causal(const Value& scores) {
    const auto like = [&](cudnnDataType_t dtype) {
      return Virtual(Dense(dtype, scores.tensor.dims));
    };
    const auto index = [&](int64_t axis) {
      return Pointwise(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, scores, nullptr, nullptr,
                       like(CUDNN_DATA_INT32), axis);
    };
    const Value row = index(2), column = index(3);
    const Value sees = Pointwise(CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, row, &column, nullptr,
                                 like(CUDNN_DATA_BOOLEAN));
    const Value masked = Number(kMasked);
    return Pointwise(CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, scores, &masked, &sees,
                     like(CUDNN_DATA_FLOAT));
  }

 private:
  Value Tensor(const CudnnTensor& t, int64_t uid, TensorKind kind) {
    absl::StatusOr<CudnnDescriptor> made = MakeCudnnTensor(t, uid, Concat("tensor ", uid), kind);
    status_.Update(made.status());
    parts_.push_back(made.ok() ? *std::move(made) : CudnnDescriptor());
    return {parts_.size() - 1, t};
  }

  const CudnnDescriptor& Kept(CudnnDescriptor part) {
    status_.Update(part.Finalize());
    parts_.push_back(std::move(part));
    return parts_.back();
  }

  Value Added(CudnnDescriptor op, const Value& y) {
    status_.Update(op.Finalize());
    ops_.push_back(std::move(op));
    return y;
  }

  // `axis` is that of GEN_INDEX, else -1.
  Value Pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t precision, const Value& x,
                  const Value* b, const Value* t, const Value& y, int64_t axis = -1) {
    CudnnDescriptor how(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "pointwise");
    how.Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode)
        .Set(CUDNN_ATTR_POINTWISE_MATH_PREC, precision);
    if (axis >= 0) how.Set(CUDNN_ATTR_POINTWISE_AXIS, axis);
    const CudnnDescriptor& kept = Kept(std::move(how));
    CudnnDescriptor op(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "pointwise operation");
    op.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kept)
        .Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, parts_[x.part])
        .Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, parts_[y.part]);
    if (b != nullptr) op.Set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, parts_[b->part]);
    if (t != nullptr) op.Set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, parts_[t->part]);
    return Added(std::move(op), y);
  }

  std::vector<CudnnDescriptor>& parts_;
  std::vector<CudnnDescriptor>& ops_;
  absl::Status status_;
  int64_t next_uid_ = kFirstVirtual;
};

// Shapes of what lies between the operands.
struct Shapes {
  explicit Shapes(const CudnnAttention& a)
      : scores{a.q.dims[0], a.q.dims[1], a.q.dims[2], a.k.dims[2]},
        rows{a.q.dims[0], a.q.dims[1], a.q.dims[2], 1} {}
  Ints scores, rows;
};

void ComposeForward(const CudnnAttention& a, Composer& c) {
  const Shapes shapes(a);
  const auto scores_like = [&](cudnnDataType_t dtype = CUDNN_DATA_FLOAT) {
    return c.Virtual(Dense(dtype, shapes.scores));
  };
  const CudnnTensor rows = Dense(CUDNN_DATA_FLOAT, shapes.rows);
  Value s = c.Product(c.Device(a.q, kQ), c.Device(Transposed(a.k), kK), scores_like());
  s = c.Pointwise(CUDNN_POINTWISE_MUL, s, c.Number(kScale), scores_like());
  if (a.causal) s = c.Causal(s);
  const Value max = c.Reduction(CUDNN_REDUCE_TENSOR_MAX, s, c.Device(rows, kMax));
  const Value shifted = c.Pointwise(CUDNN_POINTWISE_SUB, s, max, scores_like());
  const Value e = c.Pointwise(CUDNN_POINTWISE_EXP, shifted, scores_like());
  const Value sum = c.Reduction(CUDNN_REDUCE_TENSOR_ADD, e, c.Device(rows, kSum));
  const Value weights = c.Pointwise(CUDNN_POINTWISE_DIV, e, sum, scores_like(a.q.dtype));
  c.Product(weights, c.Device(a.v, kV), c.Device(a.y, kY));
}

// dkey or dvalue: x^T of, each head of query's, summed over the heads that share one of `result`.
void ComposeKeyGradient(const Value& x, const Value& of, const CudnnTensor& result, int64_t uid,
                        Composer& c) {
  CudnnTensor transposed = Transposed(Dense(of.tensor.dtype, x.tensor.dims));
  const Value xt = c.Reshape(x, c.Virtual(transposed));
  const Value out = c.Device(result, uid);
  const int64_t heads = of.tensor.dims[1];
  if (result.dims[1] == heads) {
    c.Product(xt, of, out);
    return;
  }
  Ints of_all = result.dims;
  of_all[1] = heads;
  const Value all = c.Product(xt, of, c.Virtual(Dense(result.dtype, of_all)));
  c.Reduction(CUDNN_REDUCE_TENSOR_ADD, all, out);
}

// dquery is a product's own result, not one from sums in f32 that blocks add to in any order: the
// form whose sums have a fixed order, at the price of the scores' gradient in the workspace.
void ComposeGradient(const CudnnAttention& a, Composer& c) {
  const Shapes shapes(a);
  const auto scores_like = [&](cudnnDataType_t dtype = CUDNN_DATA_FLOAT) {
    return c.Virtual(Dense(dtype, shapes.scores));
  };
  const CudnnTensor rows = Dense(CUDNN_DATA_FLOAT, shapes.rows);
  const Value q = c.Device(a.q, kQ), k = c.Device(Transposed(a.k), kK);
  const Value v = c.Device(Transposed(a.v), kV), y = c.Device(a.y, kY), dy = c.Device(a.y, kDy);
  const Value scale = c.Number(kScale);

  const Value dy_y =
      c.Pointwise(CUDNN_POINTWISE_MUL, dy, y, c.Virtual(Dense(CUDNN_DATA_FLOAT, a.y.dims)));
  const Value sum = c.Reduction(CUDNN_REDUCE_TENSOR_ADD, dy_y, c.Virtual(rows));
  // In place of what dropout would multiply by.
  const Value delta = c.Pointwise(CUDNN_POINTWISE_MUL, sum, c.Number(kOne), c.Device(rows, kDelta));

  Value s = c.Product(q, k, scores_like());
  s = c.Pointwise(CUDNN_POINTWISE_MUL, s, scale, scores_like());
  s = c.Pointwise(CUDNN_POINTWISE_SUB, s, c.Device(rows, kLogSumExp), scores_like());
  if (a.causal) s = c.Causal(s);
  const Value weights = c.Pointwise(CUDNN_POINTWISE_EXP, s, scores_like());
  ComposeKeyGradient(weights, dy, a.dv, kDv, c);

  Value ds = c.Product(dy, v, scores_like());
  ds = c.Pointwise(CUDNN_POINTWISE_SUB, ds, delta, scores_like());
  ds = c.Pointwise(CUDNN_POINTWISE_MUL, ds, weights, scores_like());
  ds = c.Pointwise(CUDNN_POINTWISE_MUL, ds, scale, scores_like(a.q.dtype));
  ComposeKeyGradient(ds, q, a.dk, kDk, c);
  c.Product(ds, c.Reshape(k, c.Virtual(a.k)), c.Device(a.dq, kDq));
}

}  // namespace

std::vector<CudnnTensor*> CudnnAttention::tensors() {
  if (!gradient) return {&q, &k, &v, &y};
  return {&q, &k, &v, &y, &dq, &dk, &dv};
}

std::vector<const CudnnTensor*> CudnnAttention::tensors() const {
  const std::vector<CudnnTensor*> all = const_cast<CudnnAttention*>(this)->tensors();
  return {all.begin(), all.end()};
}

std::string CudnnAttention::ToString() const {
  std::string text = gradient ? "attention_grad" : "attention";
  for (const CudnnTensor* t : tensors()) text += Concat(" ", t->ToString());
  return text + Concat(causal ? " causal" : "", " scale ", scale);
}

CudnnAttentionGraph::CudnnAttentionGraph(const CudnnAttention& attention)
    : CudnnGraph({.low = attention.q.dtype != CUDNN_DATA_FLOAT}),
      attention_(attention),
      scale_(attention.scale),
      masked_(-std::numeric_limits<float>::infinity()) {}

absl::StatusOr<std::shared_ptr<const CudnnAttentionGraph>> CudnnAttentionGraph::Make(
    const CudnnAttention& attention, const CudnnTarget& target) {
  std::shared_ptr<CudnnAttentionGraph> graph(new CudnnAttentionGraph(attention));
  HT_RETURN_IF_ERROR(graph->Build(target));
  return std::shared_ptr<const CudnnAttentionGraph>(std::move(graph));
}

absl::Status CudnnAttentionGraph::Build(const CudnnTarget& target) {
  Composer composer(parts_, ops_);
  (attention_.gradient ? ComposeGradient : ComposeForward)(attention_, composer);
  HT_RETURN_IF_ERROR(composer.status());
  return FinishGraph(target);
}

absl::StatusOr<CudnnDescriptor> CudnnAttentionGraph::Pack(const AttentionPointers& p,
                                                          void* workspace) const {
  std::vector<std::pair<int64_t, const void*>> of = {
      {kQ, p.q}, {kK, p.k}, {kV, p.v}, {kY, p.y}, {kScale, &scale_}};
  if (attention_.causal) of.emplace_back(kMasked, &masked_);
  if (attention_.gradient) {
    of.insert(of.end(), {{kLogSumExp, p.log_sum_exp},
                         {kDy, p.dy},
                         {kDelta, p.delta},
                         {kDq, p.dq},
                         {kDk, p.dk},
                         {kDv, p.dv},
                         {kOne, &one_}});
  } else {
    of.insert(of.end(), {{kMax, p.max}, {kSum, p.sum}});
  }
  Ints uids;
  std::vector<void*> pointers;
  for (const auto& [uid, pointer] : of) {
    uids.push_back(uid);
    pointers.push_back(const_cast<void*>(pointer));
  }
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variant pack");
  pack.Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
           static_cast<int64_t>(pointers.size()), pointers.data())
      .Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids)
      .Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  HT_RETURN_IF_ERROR(pack.Finalize());
  return pack;
}

}  // namespace halftone::cuda
