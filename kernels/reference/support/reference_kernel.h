// What reference kernels are written with. A kernel is a maker: it reads the node once and gives
// the loop to run. Elements are named by their row-major number whatever the layout, loaded as
// double (or int64), and rounded once when stored. A run allocates nothing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "halftone/graph/ops/support/infer.h"
#include "halftone/kernels/kernel.h"

namespace halftone::kernels {

// An affine map from the row-major positions of a space to numbers: start + sum of index times
// stride.
class IndexMap {
 public:
  IndexMap(absl::Span<const int64_t> dims, absl::Span<const int64_t> strides, int64_t start = 0);
  // From positions of `to` to elements of `from`, which broadcasts to it.
  static IndexMap Broadcast(const Shape& from, const Shape& to);
  // Positions of the space spanned by some axes of a tensor, as (parts of) its element numbers.
  static IndexMap Over(const Shape& shape, const ops::Axes& axes);

  int64_t size() const { return size_; }
  int64_t operator()(int64_t position) const;

 private:
  absl::InlinedVector<int64_t, 4> dims_, strides_;
  int64_t start_, size_;
  bool contiguous_;
};

// What a kernel keeps of its node; kernels outlive graphs.
struct RefNode {
  explicit RefNode(const ir::Node& node);
  ir::Attributes attrs;
  std::vector<ir::ValueType> inputs, outputs;
  // Set by the maker: room that RefCall::workspace gives.
  size_t workspace_bytes = 0;

  const Shape& in(int i) const { return inputs[i].shape; }
  const Shape& out(int i) const { return outputs[i].shape; }
  bool has_in(int i) const { return i < static_cast<int>(inputs.size()); }
};

// One operand of a run.
class RefOperand {
 public:
  explicit RefOperand(const ir::ValueType& type);
  double Load(const void* data, int64_t i) const { return LoadDouble(data, dtype_, At(i)); }
  int64_t LoadInt(const void* data, int64_t i) const {
    return halftone::LoadInt(data, dtype_, At(i));
  }
  void Store(void* data, int64_t i, double x) const { StoreDouble(data, dtype_, At(i), x); }
  void StoreInt(void* data, int64_t i, int64_t x) const {
    halftone::StoreInt(data, dtype_, At(i), x);
  }

  int64_t Wrapped(int64_t x) const;
  // Where element i lies, in elements.
  int64_t At(int64_t i) const { return storage_(i); }
  size_t element_bytes() const { return SizeOf(dtype_); }

 private:
  RefOperand(const ir::ValueType& type, const ir::StridedAxes& axes);

  DType dtype_;
  IndexMap storage_;
};

class RefCall {
 public:
  RefCall(const std::vector<RefOperand>& inputs, const std::vector<RefOperand>& outputs,
          const KernelArgs& args)
      : inputs_(inputs), outputs_(outputs), args_(args) {}

  double Load(int input, int64_t i) const { return inputs_[input].Load(args_.inputs[input], i); }
  int64_t LoadInt(int input, int64_t i) const {
    return inputs_[input].LoadInt(args_.inputs[input], i);
  }
  void Store(int output, int64_t i, double x) const {
    outputs_[output].Store(args_.outputs[output], i, x);
  }
  void StoreInt(int output, int64_t i, int64_t x) const {
    outputs_[output].StoreInt(args_.outputs[output], i, x);
  }
  // The low bits of x, as integer arithmetic leaves them; StoreInt, like a cast, saturates.
  void StoreWrapped(int output, int64_t i, int64_t x) const {
    StoreInt(output, i, outputs_[output].Wrapped(x));
  }
  // The bits of an element of an input, to an output of the same dtype.
  void Copy(int input, int64_t from, int output, int64_t to) const;
  // Whether an output lies where an input does, so that what is not stored stays.
  bool IsInPlace(int input, int output) const {
    return args_.inputs[input] == args_.outputs[output];
  }
  // Is element i of input 1, the indices, in [0, bound)? If not, raises the fault (the first of a
  // run is kept).
  bool CheckIndex(int64_t i, int64_t bound) const;
  uint64_t run_count() const { return args_.state->run_count; }
  template <typename T>
  T* workspace() const {
    return static_cast<T*>(args_.workspace);
  }

 private:
  const std::vector<RefOperand>& inputs_;
  const std::vector<RefOperand>& outputs_;
  const KernelArgs& args_;
};

using RefRun = std::function<void(const RefCall&)>;
using RefMaker = std::function<RefRun(RefNode&)>;

// Registers "reference:<op>".
void AddReference(KernelRegistry& r, const std::string& op, ir::DTypeSet dtypes, RefMaker make);

// Elementwise kernels from a formula. Operands broadcast to the output. Where `exact` is given,
// integer and bool operands go through it instead.
using Real1 = double (*)(double);
using Real2 = double (*)(double, double);
using Int1 = int64_t (*)(int64_t);
using Int2 = int64_t (*)(int64_t, int64_t);
void AddReference1(KernelRegistry& r, const std::string& op, ir::DTypeSet dtypes, Real1 real,
                   Int1 exact = nullptr);
void AddReference2(KernelRegistry& r, const std::string& op, ir::DTypeSet dtypes, Real2 real,
                   Int2 exact = nullptr);

}  // namespace halftone::kernels
