#include "halftone/kernels/cpu/onednn/primitives.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "halftone/core/align.h"
#include "halftone/core/alloc_counter.h"
#include "halftone/core/cpu_features.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels::onednn {
dnnl::engine& Engine() {
  static auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

dnnl::stream& Stream() {
  static auto* stream = new dnnl::stream(Engine());
  return *stream;
}

dnnl::memory::data_type TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return dnnl::memory::data_type::f32;
    case DType::kF16:
      return dnnl::memory::data_type::f16;
    case DType::kBF16:
      return dnnl::memory::data_type::bf16;
    case DType::kI32:
      return dnnl::memory::data_type::s32;
    case DType::kU8:
      return dnnl::memory::data_type::u8;
    default:
      HT_CHECK(false, "oneDNN has no such dtype");
  }
  return dnnl::memory::data_type::undef;
}

dnnl::memory::dims DimsOf(const Shape& shape) {
  return dnnl::memory::dims(shape.dims().begin(), shape.dims().end());
}

dnnl::memory::desc DescOf(DType dtype, const dnnl::memory::dims& dims,
                          const dnnl::memory::dims& strides) {
  return dnnl::memory::desc(dims, TypeOf(dtype), strides);
}

dnnl::memory::desc DescOf(const ir::ValueType& type) {
  if (type.layout == ir::Layout::kChannelBlocks) {
    return dnnl::memory::desc(DimsOf(type.shape), TypeOf(type.dtype),
                              dnnl::memory::format_tag::nChw16c);
  }
  const auto strides = ir::StridesOf(type);
  return DescOf(type.dtype, DimsOf(type.shape), dnnl::memory::dims(strides.begin(), strides.end()));
}

dnnl::memory::desc PlainDesc(DType dtype, const dnnl::memory::dims& dims) {
  dnnl::memory::dims strides(dims.size(), 1);
  for (int i = static_cast<int>(dims.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * dims[i + 1];
  return DescOf(dtype, dims, strides);
}

dnnl::memory::desc AnyDesc(DType dtype, const dnnl::memory::dims& dims) {
  return dnnl::memory::desc(dims, TypeOf(dtype), dnnl::memory::format_tag::any);
}

absl::Status CheckOperands(const ir::Node& node) {
  const DType dtype = node.input_type(0).dtype;
  HT_RETURN_IF_ERROR(NotWidened(node));
  if (dtype == DType::kBF16 && !node.attrs().Has("widened") && !CpuFeatures::Get().fast_bf16) {
    return Unimplemented("the CPU multiplies bf16 no faster than f32");
  }
  for (const ir::Value& v : node.inputs()) {
    if (v.type().num_elements() == 0) return Unimplemented("empty operand");
  }
  return absl::OkStatus();
}

bool IsReference(const std::string& implementation) {
  return implementation.rfind("ref", 0) == 0 || implementation.find(":ref") != std::string::npos;
}

dnnl::primitive_attr UserScratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

class SequenceBuilder::Sequence : public Kernel {
 public:
  enum class Source { kInput, kOutput, kWorkspace, kPacked };
  struct Slot {
    Source source;
    int port;
    size_t offset;
    dnnl::memory::desc desc;
    dnnl::memory memory;
    void* handle = nullptr;
  };
  struct Stage {
    dnnl::primitive primitive;
    std::vector<dnnl_exec_arg_t> args;
  };

  int AddSlot(Source source, int port, size_t offset, const dnnl::memory::desc& desc) {
    slots.push_back({source, port, offset, desc, dnnl::memory(desc, Engine(), nullptr), nullptr});
    return static_cast<int>(slots.size()) - 1;
  }
  int AddWorkspace(const dnnl::memory::desc& desc) {
    const size_t offset = workspace_bytes_;
    workspace_bytes_ += AlignUp(desc.get_size(), kBufferAlignment);
    return AddSlot(Source::kWorkspace, 0, offset, desc);
  }
  // Scratchpads share one region: stages run one after another.
  int AddScratchpad(const dnnl::memory::desc& desc) {
    scratchpads_.push_back(AddSlot(Source::kWorkspace, 0, 0, desc));
    scratchpad_bytes_ = std::max(scratchpad_bytes_, AlignUp(desc.get_size(), kBufferAlignment));
    return scratchpads_.back();
  }
  // Behind all temporaries. Call once, at the end.
  void PlaceScratchpads() {
    for (int slot : scratchpads_) slots[slot].offset = workspace_bytes_;
    workspace_bytes_ += scratchpad_bytes_;
  }
  void AddImplementation(const std::string& name) {
    if (!implementation_.empty()) implementation_ += "+";
    implementation_ += name;
  }

  void Run(const KernelArgs& args) override {
    AllocationPause pause;
    for (Slot& slot : slots) {
      void* handle = nullptr;
      switch (slot.source) {
        case Source::kInput:
          handle = const_cast<void*>(args.inputs[slot.port]);
          break;
        case Source::kOutput:
          handle = args.outputs[slot.port];
          break;
        case Source::kWorkspace:
          handle = args.workspace;
          break;
        case Source::kPacked:
          HT_CHECK(args.packed != nullptr, "nobody has packed the operand");
          handle = const_cast<void*>(args.packed);
          break;
      }
      handle = static_cast<char*>(handle) + slot.offset;
      if (handle != slot.handle) {
        HT_CHECK(dnnl_memory_set_data_handle(slot.memory.get(), handle) == dnnl_success);
        slot.handle = handle;
      }
    }
    for (const Stage& stage : stages) {
      HT_CHECK(dnnl_primitive_execute(stage.primitive.get(), stream_,
                                      static_cast<int>(stage.args.size()),
                                      stage.args.data()) == dnnl_success,
               "oneDNN failed to run a primitive that it had accepted");
    }
  }

  // Makes a packed slot: `from` is how the operand lies in the graph.
  int AddPacked(const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
    const auto memory = [](const dnnl::memory::desc& desc) {
      return dnnl::memory(desc, Engine(), nullptr);
    };
    pack_ = dnnl::reorder(dnnl::reorder::primitive_desc(Engine(), from, Engine(), to));
    pack_from_ = memory(from);
    pack_to_ = memory(to);
    // Of both: a square matrix and its transpose are packed alike.
    packing_ = {to.get_size(), "onednn " + BlobOf(from) + BlobOf(to)};
    return AddSlot(Source::kPacked, 0, 0, to);
  }

  void Pack(const KernelArgs& args, void* packed) override {
    AllocationPause pause;
    pack_from_.set_data_handle(const_cast<void*>(args.inputs[1]));
    pack_to_.set_data_handle(packed);
    const dnnl_exec_arg_t operands[] = {{DNNL_ARG_FROM, pack_from_.get()},
                                        {DNNL_ARG_TO, pack_to_.get()}};
    HT_CHECK(dnnl_primitive_execute(pack_.get(), stream_, 2, operands) == dnnl_success,
             "oneDNN failed to run a reorder that it had accepted");
  }

  std::vector<Slot> slots;
  std::vector<Stage> stages;

 private:
  dnnl::reorder pack_;
  dnnl::memory pack_from_, pack_to_;
  dnnl_stream_t stream_ = Stream().get();
  std::vector<int> scratchpads_;
  size_t scratchpad_bytes_ = 0;
};

SequenceBuilder::SequenceBuilder() : sequence_(std::make_unique<Sequence>()) {}
SequenceBuilder::~SequenceBuilder() = default;

int SequenceBuilder::Input(int port, const dnnl::memory::desc& desc, size_t offset) {
  return sequence_->AddSlot(Sequence::Source::kInput, port, offset, desc);
}
int SequenceBuilder::Output(int port, const dnnl::memory::desc& desc, size_t offset) {
  return sequence_->AddSlot(Sequence::Source::kOutput, port, offset, desc);
}
int SequenceBuilder::Temp(const dnnl::memory::desc& desc) { return sequence_->AddWorkspace(desc); }

void SequenceBuilder::AddReorder(int from, int to) {
  const auto& slots = sequence_->slots;
  dnnl::reorder::primitive_desc pd(Engine(), slots[from].desc, Engine(), slots[to].desc,
                                   UserScratchpad());
  Sequence::Stage stage{dnnl::reorder(pd), {}};
  stage.args = {{DNNL_ARG_FROM, slots[from].memory.get()}, {DNNL_ARG_TO, slots[to].memory.get()}};
  if (pd.scratchpad_desc().get_size() > 0) {
    const int scratch = sequence_->AddScratchpad(pd.scratchpad_desc());
    stage.args.push_back({DNNL_ARG_SCRATCHPAD, sequence_->slots[scratch].memory.get()});
  }
  sequence_->stages.push_back(std::move(stage));
}

int SequenceBuilder::ReadAs(int slot, const dnnl::memory::desc& desc) {
  if (sequence_->slots[slot].desc == desc) return slot;
  const int temp = Temp(desc);
  AddReorder(slot, temp);
  return temp;
}

int SequenceBuilder::ReadPacked(int slot, const dnnl::memory::desc& desc) {
  const dnnl::memory::desc& lies = sequence_->slots[slot].desc;
  return lies == desc ? slot : sequence_->AddPacked(lies, desc);
}

int SequenceBuilder::WriteAs(int slot, const dnnl::memory::desc& desc) {
  if (sequence_->slots[slot].desc == desc) return slot;
  const int temp = Temp(desc);
  pending_writes_.emplace_back(temp, slot);
  return temp;
}

absl::Status SequenceBuilder::Add(const dnnl::primitive_desc_base& desc,
                                  const dnnl::primitive& primitive,
                                  const std::vector<std::pair<int, int>>& arg_slots) {
  const std::string implementation = desc.impl_info_str();
  if (IsReference(implementation)) {
    return Unimplemented("library gives only ", implementation);
  }
  sequence_->AddImplementation(implementation);
  Sequence::Stage stage{primitive, {}};
  for (const auto& [arg, slot] : arg_slots) {
    stage.args.push_back({arg, sequence_->slots[slot].memory.get()});
  }
  const dnnl::memory::desc scratchpad = desc.scratchpad_desc();
  if (scratchpad.get_size() > 0) {
    const int slot = sequence_->AddScratchpad(scratchpad);
    stage.args.push_back({DNNL_ARG_SCRATCHPAD, sequence_->slots[slot].memory.get()});
  }
  sequence_->stages.push_back(std::move(stage));
  for (const auto& [from, to] : pending_writes_) AddReorder(from, to);
  pending_writes_.clear();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> SequenceBuilder::Build() {
  sequence_->PlaceScratchpads();
  return std::unique_ptr<Kernel>(std::move(sequence_));
}

namespace {

// The library's code generator crashes where it gets no memory for its code: a primitive may need
// dozens of pieces of 256 KiB.
absl::Status CheckRoomForCode() {
  constexpr size_t kRoom = size_t{64} << 20;
  void* const room = mmap(nullptr, kRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) {
    return ResourceExhausted("no room for the code of a kernel: the system gives no ", kRoom >> 20,
                             " MiB of address space");
  }
  munmap(room, kRoom);
  return absl::OkStatus();
}

// The first primitive makes caches of the library, which end with the process before older statics
// do: a graph that is first called, or called with another signature, by the destructor of one of
// those takes other kernels.
std::atomic<bool> library_has_ended{false};

void NoteLibraryIsUsed() {
  static const int registered = std::atexit([] { library_has_ended = true; });
  (void)registered;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> Guarded(
    const std::function<absl::StatusOr<std::unique_ptr<Kernel>>()>& make) {
  if (library_has_ended) return Unimplemented("library: the process is ending");
  HT_RETURN_IF_ERROR(CheckRoomForCode());
  try {
    absl::StatusOr<std::unique_ptr<Kernel>> kernel = make();
    NoteLibraryIsUsed();
    return kernel;
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) {
      return ResourceExhausted("library: ", error.what());
    }
    return Unimplemented("library: ", error.what());
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("no memory for a kernel");
  }
}

void AddCandidate(KernelRegistry& r, const std::string& op,
                  std::function<absl::Status(const ir::Node&)> supports,
                  std::function<absl::StatusOr<std::unique_ptr<Kernel>>(const ir::Node&)> create,
                  ir::DTypeSet dtypes) {
  KernelCandidate candidate;
  candidate.name = "cpu:onednn:" + op;
  candidate.op = op;
  candidate.device = Device::Kind::kCpu;
  candidate.tier = KernelTier::kLibrary;
  candidate.dtypes = dtypes;
  candidate.supports = [supports = std::move(supports)](const ir::Node& node) -> absl::Status {
    HT_RETURN_IF_ERROR(CheckOperands(node));
    return supports ? supports(node) : absl::OkStatus();
  };
  candidate.create = [create = std::move(create)](const ir::Node& node) {
    return Guarded([&] { return create(node); });
  };
  r.Add(std::move(candidate));
}

}  // namespace halftone::kernels::onednn
