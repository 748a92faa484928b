#include "halftone/kernels/reference/support/reference_kernel.h"

#include <cstring>

namespace halftone::kernels {
namespace {

class ReferenceKernel : public Kernel {
 public:
  ReferenceKernel(const ir::Node& node, const RefMaker& make) {
    RefNode kept(node);
    for (const ir::ValueType& type : kept.inputs) inputs_.emplace_back(type);
    for (const ir::ValueType& type : kept.outputs) outputs_.emplace_back(type);
    run_ = make(kept);
    workspace_bytes_ = kept.workspace_bytes;
  }
  void Run(const KernelArgs& args) override { run_(RefCall(inputs_, outputs_, args)); }

 private:
  std::vector<RefOperand> inputs_, outputs_;
  RefRun run_;
};

}  // namespace

IndexMap::IndexMap(absl::Span<const int64_t> dims, absl::Span<const int64_t> strides, int64_t start)
    : dims_(dims.begin(), dims.end()),
      strides_(strides.begin(), strides.end()),
      start_(start),
      size_(1),
      contiguous_(true) {
  for (int axis = static_cast<int>(dims.size()) - 1; axis >= 0; --axis) {
    contiguous_ = contiguous_ && (dims[axis] == 1 || strides[axis] == size_);
    size_ *= dims[axis];
  }
}

IndexMap IndexMap::Broadcast(const Shape& from, const Shape& to) {
  const auto own = from.strides();
  absl::InlinedVector<int64_t, 4> strides(to.rank(), 0);
  const int lead = to.rank() - from.rank();
  for (int axis = 0; axis < from.rank(); ++axis) {
    if (from[axis] != 1) strides[lead + axis] = own[axis];
  }
  return IndexMap(to.dims(), strides);
}

IndexMap IndexMap::Over(const Shape& shape, const ops::Axes& axes) {
  const auto own = shape.strides();
  absl::InlinedVector<int64_t, 4> dims, strides;
  for (int axis : axes) {
    dims.push_back(shape[axis]);
    strides.push_back(own[axis]);
  }
  return IndexMap(dims, strides);
}

int64_t IndexMap::operator()(int64_t position) const {
  if (contiguous_) return start_ + position;
  int64_t number = start_;
  for (int axis = static_cast<int>(dims_.size()) - 1; axis >= 0; --axis) {
    number += position % dims_[axis] * strides_[axis];
    position /= dims_[axis];
  }
  return number;
}

RefNode::RefNode(const ir::Node& node) : attrs(node.attrs()) {
  for (int i = 0; i < node.num_inputs(); ++i) inputs.push_back(node.input_type(i));
  for (int i = 0; i < node.num_outputs(); ++i) outputs.push_back(node.output_type(i));
}

RefOperand::RefOperand(const ir::ValueType& type) : RefOperand(type, ir::StridedAxesOf(type)) {}
RefOperand::RefOperand(const ir::ValueType& type, const ir::StridedAxes& axes)
    : dtype_(type.dtype), storage_(axes.extents, axes.strides) {}

int64_t RefOperand::Wrapped(int64_t x) const {
  if (dtype_ == DType::kI32) return static_cast<int32_t>(static_cast<uint32_t>(x));
  if (dtype_ == DType::kU8) return static_cast<uint8_t>(x);
  return x;
}

bool RefCall::CheckIndex(int64_t i, int64_t bound) const {
  const int64_t value = LoadInt(1, i);
  if (value >= 0 && value < bound) return true;
  Fault& fault = args_.state->fault;
  if (!fault.raised) fault = {true, value, bound, i};
  return false;
}

void RefCall::Copy(int input, int64_t from, int output, int64_t to) const {
  const size_t size = outputs_[output].element_bytes();
  std::memcpy(static_cast<char*>(args_.outputs[output]) + outputs_[output].At(to) * size,
              static_cast<const char*>(args_.inputs[input]) + inputs_[input].At(from) * size, size);
}

void AddReference(KernelRegistry& r, const std::string& op, ir::DTypeSet dtypes, RefMaker make) {
  KernelCandidate candidate;
  candidate.name = "reference:" + op;
  candidate.op = op;
  candidate.device = Device::Kind::kReference;
  candidate.tier = KernelTier::kReference;
  candidate.dtypes = dtypes;
  candidate.create = [make = std::move(make)](const ir::Node& node) {
    return absl::StatusOr<std::unique_ptr<Kernel>>(std::make_unique<ReferenceKernel>(node, make));
  };
  r.Add(std::move(candidate));
}

void AddReference1(KernelRegistry& r, const std::string& op, ir::DTypeSet dtypes, Real1 real,
                   Int1 exact) {
  AddReference(r, op, dtypes, [=](RefNode& node) -> RefRun {
    const int64_t size = node.out(0).num_elements();
    if (exact != nullptr && !IsFloat(node.inputs[0].dtype)) {
      return [=](const RefCall& call) {
        for (int64_t i = 0; i < size; ++i) call.StoreWrapped(0, i, exact(call.LoadInt(0, i)));
      };
    }
    return [=](const RefCall& call) {
      for (int64_t i = 0; i < size; ++i) call.Store(0, i, real(call.Load(0, i)));
    };
  });
}

void AddReference2(KernelRegistry& r, const std::string& op, ir::DTypeSet dtypes, Real2 real,
                   Int2 exact) {
  AddReference(r, op, dtypes, [=](RefNode& node) -> RefRun {
    const int64_t size = node.out(0).num_elements();
    const IndexMap a = IndexMap::Broadcast(node.in(0), node.out(0));
    const IndexMap b = IndexMap::Broadcast(node.in(1), node.out(0));
    if (exact != nullptr && !IsFloat(node.inputs[0].dtype)) {
      return [=](const RefCall& call) {
        for (int64_t i = 0; i < size; ++i) {
          call.StoreWrapped(0, i, exact(call.LoadInt(0, a(i)), call.LoadInt(1, b(i))));
        }
      };
    }
    return [=](const RefCall& call) {
      for (int64_t i = 0; i < size; ++i) {
        call.Store(0, i, real(call.Load(0, a(i)), call.Load(1, b(i))));
      }
    };
  });
}

}  // namespace halftone::kernels
