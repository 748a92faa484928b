// The emulated cuDNN's attention carried out: one operation after another, sums in f32; what lies
// between two is rounded to the dtype that its tensor says.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "halftone/tests/cuda_emulation/cudnn_attention.h"

namespace halftone::emulation::cudnn {
namespace {

using Position = std::array<int64_t, kAttentionRank>;

template <typename Visit>
void ForEachPosition(const std::vector<int64_t>& dims, const Visit& visit) {
  Position at;
  for (at[0] = 0; at[0] < dims[0]; ++at[0]) {
    for (at[1] = 0; at[1] < dims[1]; ++at[1]) {
      for (at[2] = 0; at[2] < dims[2]; ++at[2]) {
        for (at[3] = 0; at[3] < dims[3]; ++at[3]) visit(at);
      }
    }
  }
}

// A tensor of a run.
class Array {
 public:
  Array(const Operand& operand, void* data) : o_(operand), data_(data) {
    for (size_t i = 0; i < kAttentionRank; ++i) strides_[i] = o_.dims[i] == 1 ? 0 : o_.strides[i];
    if (data == nullptr) values_.resize(o_.bytes() / static_cast<int64_t>(SizeOf(o_.dtype)));
  }
  const std::vector<int64_t>& dims() const { return o_.dims; }
  // Of extents of 1 any position is the only one.
  int64_t OffsetOf(const Position& at) const {
    return at[0] * strides_[0] + at[1] * strides_[1] + at[2] * strides_[2] + at[3] * strides_[3];
  }
  float Get(int64_t offset) const {
    return data_ == nullptr ? values_[offset] : LoadElement(data_, o_.dtype, offset);
  }
  void Put(int64_t offset, float value) {
    if (data_ != nullptr) {
      StoreElement(data_, o_.dtype, offset, value);
      return;
    }
    if (IsLow(o_.dtype)) {
      uint16_t rounded = 0;
      StoreElement(&rounded, o_.dtype, 0, value);
      value = LoadElement(&rounded, o_.dtype, 0);
    }
    values_[offset] = value;
  }
  float At(const Position& at) const { return Get(OffsetOf(at)); }
  std::vector<float> RowMajor() const {
    std::vector<float> values;
    values.reserve(ElementsOf(o_.dims));
    ForEachPosition(o_.dims, [&](const Position& at) { values.push_back(At(at)); });
    return values;
  }

 private:
  Operand o_;
  Position strides_;
  void* data_;                 // null of a virtual one
  std::vector<float> values_;  // by offset
};

void Multiply(const Array& a, const Array& b, Array& y) {
  const std::vector<float> left = a.RowMajor(), right = b.RowMajor();
  const int64_t heads = a.dims()[1], group = heads / b.dims()[1];
  const int64_t depth = a.dims()[3], columns = b.dims()[3];
  std::vector<float> sums(columns);
  Position row;
  for (row[0] = 0; row[0] < y.dims()[0]; ++row[0]) {
    for (row[1] = 0; row[1] < heads; ++row[1]) {
      const int64_t head = (row[0] * heads + row[1]) / group;  // of b
      for (row[2] = 0; row[2] < y.dims()[2]; ++row[2]) {
        const float* const factors =
            left.data() + ((row[0] * heads + row[1]) * y.dims()[2] + row[2]) * depth;
        std::fill(sums.begin(), sums.end(), 0.0F);
        for (int64_t k = 0; k < depth; ++k) {
          const float* const of_b = right.data() + (head * depth + k) * columns;
          for (int64_t j = 0; j < columns; ++j) sums[j] += factors[k] * of_b[j];
        }
        for (row[3] = 0; row[3] < columns; ++row[3]) y.Put(y.OffsetOf(row), sums[row[3]]);
      }
    }
  }
}

void Reduce(cudnnReduceTensorOp_t how, const Array& x, Array& y) {
  const bool max = how == CUDNN_REDUCE_TENSOR_MAX;
  Position size;  // how many of x meet in one of y
  for (size_t i = 0; i < kAttentionRank; ++i) size[i] = x.dims()[i] / y.dims()[i];
  const std::vector<int64_t> part(size.begin(), size.end());
  ForEachPosition(y.dims(), [&](const Position& to) {
    float result = max ? -std::numeric_limits<float>::infinity() : 0.0F;
    ForEachPosition(part, [&](const Position& at) {
      Position from;
      for (size_t i = 0; i < kAttentionRank; ++i) from[i] = to[i] * size[i] + at[i];
      result = max ? std::max(result, x.At(from)) : result + x.At(from);
    });
    y.Put(y.OffsetOf(to), result);
  });
}

float Apply(cudnnPointwiseMode_t mode, float x, float b, float t) {
  switch (mode) {
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_SUB:
      return x - b;
    case CUDNN_POINTWISE_DIV:
      return x / b;
    case CUDNN_POINTWISE_EXP:
      return std::exp(x);
    case CUDNN_POINTWISE_CMP_GE:
      return x >= b ? 1 : 0;
    default:  // BINARY_SELECT
      return t != 0 ? x : b;
  }
}

}  // namespace

void RunAttention(const Descriptor& graph, const std::map<int64_t, void*>& data, bool wrong) {
  std::map<int64_t, Array> arrays;
  const auto array_of = [&](const Descriptor& tensor) -> Array& {
    const Operand operand = OperandOf(tensor);
    const auto given = data.find(operand.uid);
    return arrays.try_emplace(operand.uid, operand, given == data.end() ? nullptr : given->second)
        .first->second;
  };
  for (const DescriptorPtr& op : graph.References(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
    const auto inputs = InputsOf(*op);
    const Array& x = array_of(*inputs[0]);
    const Array* const b = inputs.size() > 1 ? &array_of(*inputs[1]) : nullptr;
    const Array* const t = inputs.size() > 2 ? &array_of(*inputs[2]) : nullptr;
    Array& y = array_of(OutputOf(*op));
    if (op->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
      Multiply(x, *b, y);
    } else if (op->type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) {
      Reduce(ReductionOf(*op), x, y);
    } else if (op->type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) {
      ForEachPosition(y.dims(), [&](const Position& at) {
        const int64_t offset = y.OffsetOf(at);
        y.Put(offset, x.Get(offset));
      });
    } else {
      const cudnnPointwiseMode_t mode = ModeOf(*op);
      const auto axis = op->Reference(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)
                            ->Value<int64_t>(CUDNN_ATTR_POINTWISE_AXIS, 0);
      ForEachPosition(y.dims(), [&](const Position& at) {
        const float value =
            mode == CUDNN_POINTWISE_GEN_INDEX
                ? static_cast<float>(at[axis])
                : Apply(mode, x.At(at), b == nullptr ? 0 : b->At(at), t == nullptr ? 0 : t->At(at));
        y.Put(y.OffsetOf(at), value);
      });
    }
    if (wrong && !IsVirtual(OutputOf(*op))) {
      ForEachPosition(y.dims(), [&](const Position& at) {
        y.Put(y.OffsetOf(at), std::numeric_limits<float>::quiet_NaN());
      });
    }
  }
}

}  // namespace halftone::emulation::cudnn
