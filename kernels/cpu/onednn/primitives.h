// oneDNN behind our kernel interface: descriptors from value types, and a Kernel that runs a short
// sequence of primitives. Only files onednn_*.cc include this. Source: oneDNN developer guide,
// "Basic concepts" and "Memory format propagation".
#pragma once

#include <utility>
#include <vector>

#include "halftone/kernels/cpu/onednn/api.h"
#include "halftone/kernels/kernel.h"

namespace halftone::kernels::onednn {

dnnl::engine& Engine();
dnnl::stream& Stream();

// Requires: a dtype oneDNN has (f32, f16, bf16, i32, u8).
dnnl::memory::data_type TypeOf(DType dtype);
// Logical dims of the type with the strides or blocks of its layout.
dnnl::memory::desc DescOf(const ir::ValueType& type);
dnnl::memory::desc DescOf(DType dtype, const dnnl::memory::dims& dims,
                          const dnnl::memory::dims& strides);
// Row-major over `dims`.
dnnl::memory::desc PlainDesc(DType dtype, const dnnl::memory::dims& dims);
// `dims` in whatever order the primitive likes best.
dnnl::memory::desc AnyDesc(DType dtype, const dnnl::memory::dims& dims);
dnnl::memory::dims DimsOf(const Shape& shape);

// Refuses nodes with an empty operand, those whose 16-bit operands the graph says are widened, and,
// of ops without such a choice, bf16 where the CPU has no fast instructions for it.
absl::Status CheckOperands(const ir::Node& node);

// Whether an implementation of that name is the library's reference code, which is orders of
// magnitude slower than the others and chosen without a word.
bool IsReference(const std::string& implementation);

// Attributes for every primitive: scratchpad memory comes from the kernel's workspace.
dnnl::primitive_attr UserScratchpad();

// Builds a Kernel that runs primitives one after another. Memory is named by slots: node inputs,
// node outputs, and temporaries in the workspace. Reorders between what the graph stores and what a
// primitive wants are added where the descriptors differ.
class SequenceBuilder {
 public:
  SequenceBuilder();
  ~SequenceBuilder();
  SequenceBuilder(const SequenceBuilder&) = delete;
  SequenceBuilder& operator=(const SequenceBuilder&) = delete;

  // `desc` describes how the bytes of the port lie, from byte `offset` on; it may be a reshaped view of
  // the node's type.
  int Input(int port, const dnnl::memory::desc& desc, size_t offset = 0);
  int Output(int port, const dnnl::memory::desc& desc, size_t offset = 0);
  int Temp(const dnnl::memory::desc& desc);
  // The slot itself if it already lies like `desc`, else a temporary filled by a reorder.
  int ReadAs(int slot, const dnnl::memory::desc& desc);
  // The same of input 1 of a node with the attribute `packed`: where it lies otherwise, the kernel gets
  // a packing, and Run finds it done. Once at most.
  int ReadPacked(int slot, const dnnl::memory::desc& desc);
  // A slot to write that lies like `desc`; Flush adds the reorder to `slot` where they differ.
  int WriteAs(int slot, const dnnl::memory::desc& desc);

  // Adds a primitive. Refuses (Unimplemented) reference implementations.
  absl::Status Add(const dnnl::primitive_desc_base& desc, const dnnl::primitive& primitive,
                   const std::vector<std::pair<int, int>>& arg_slots);
  absl::StatusOr<std::unique_ptr<Kernel>> Build();

 private:
  class Sequence;
  void AddReorder(int from, int to);
  std::unique_ptr<Sequence> sequence_;
  std::vector<std::pair<int, int>> pending_writes_;  // (temporary, output)
};

// Adds pd's primitive with the given arguments; an empty descriptor (the library has nothing for
// these types) is Unimplemented.
template <typename Primitive>
absl::Status AddPrimitive(SequenceBuilder& sequence, const typename Primitive::primitive_desc& pd,
                          const std::vector<std::pair<int, int>>& arg_slots) {
  return sequence.Add(pd, Primitive(pd), arg_slots);
}

// Runs `make`, turning the library's exceptions into Unimplemented.
absl::StatusOr<std::unique_ptr<Kernel>> Guarded(
    const std::function<absl::StatusOr<std::unique_ptr<Kernel>>()>& make);

// Registers "cpu:onednn:<op>" for `dtypes`. `supports` may be null; CheckOperands comes first.
void AddCandidate(KernelRegistry& r, const std::string& op,
                  std::function<absl::Status(const ir::Node&)> supports,
                  std::function<absl::StatusOr<std::unique_ptr<Kernel>>(const ir::Node&)> create,
                  ir::DTypeSet dtypes = {DType::kF32, DType::kBF16});

}  // namespace halftone::kernels::onednn
