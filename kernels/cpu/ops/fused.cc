// fused: the kernels of its ops, called tile by tile, so that what lies between them stays in the
// first cache. Each is the kernel that the op has alone: every element gets the bits of the unfused
// graph.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "halftone/core/align.h"
#include "halftone/core/threads.h"
#include "halftone/graph/ops/support/fused_body.h"
#include "halftone/kernels/cpu/support/native_kernel.h"

namespace halftone::kernels {
namespace {

// Elements of a tile: few enough that a handful of tiles fits the first cache, enough that calling
// the kernels costs little beside what they do.
constexpr int64_t kTileElements = 1024;

constexpr int kMaxFusedValues = ops::kMaxFusedInputs + ops::kMaxFusedSteps;

using Access = ops::FusedAccess;

// The kernels of a body's steps, for tiles of one size.
using TileKernels = std::vector<std::unique_ptr<Kernel>>;

// An operand of a tile of `elements`. Beside numbers of channels in blocks it has rows of one block.
Shape TileShape(const Access& access, int64_t elements, bool in_blocks) {
  switch (access.kind) {
    case Access::Kind::kOne:
      return Shape();
    case Access::Kind::kChannels:
      return Shape({1, ir::kChannelBlock});
    default:
      return in_blocks ? Shape({elements / ir::kChannelBlock, ir::kChannelBlock})
                       : Shape({elements});
  }
}

bool HasChannels(const std::vector<Access>& accesses) {
  return std::any_of(accesses.begin(), accesses.end(),
                     [](const Access& a) { return a.kind == Access::Kind::kChannels; });
}

absl::StatusOr<TileKernels> MakeTile(const ops::FusedBody& body,
                                     const std::vector<ir::ValueType>& inputs,
                                     const std::vector<Access>& accesses, int64_t elements,
                                     const KernelRegistry& registry) {
  ir::Graph graph("tile");
  ir::Builder b(&graph);
  std::vector<ir::Expr> operands;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape shape = TileShape(accesses[i], elements, HasChannels(accesses));
    operands.push_back(b.Input("x", {inputs[i].dtype, shape}));
  }
  const std::vector<ir::Expr> steps = body.Build(b, operands);
  HT_RETURN_IF_ERROR(b.status());
  TileKernels kernels;
  for (const ir::Expr& step : steps) {
    HT_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
                        registry.Select(*step.value().node, Device::Kind::kCpu));
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

class FusedKernel : public Kernel {
 public:
  FusedKernel(const ir::Node& node, const ops::FusedBody& body,
              const std::vector<ir::ValueType>& step_types)
      : num_inputs_(node.num_inputs()), n_(node.output_type().num_elements()), row_(n_) {
    for (int i = 0; i < num_inputs_; ++i) {
      accesses_.push_back(*ops::AccessOf(node.input_type(i), node.output_type()));
      sizes_.push_back(SizeOf(node.input_type(i).dtype));
      if (accesses_.back().period > 0) row_ = accesses_.back().period;
    }
    if (HasChannels(accesses_)) blocks_ = node.output_type().shape[1] / ir::kChannelBlock;
    for (const ops::FusedStep& step : body.steps()) operands_.push_back(step.operands);
    for (const ir::ValueType& type : step_types) sizes_.push_back(SizeOf(type.dtype));
    // Short rows go into a tile as many as fit, beside copies of what repeats; those of one block of channels do not.
    if (row_ <= kTileElements && !HasChannels(accesses_)) {
      tile_ = std::max<int64_t>(1, kTileElements / std::max<int64_t>(1, row_)) * row_;
      tile_ = std::min(tile_, n_);
      tail_ = tile_ == 0 ? 0 : n_ % tile_;
      row_ = n_;
      repeats_ = true;
    } else {
      tile_ = std::min(kTileElements, row_);
      tail_ = tile_ == 0 ? 0 : row_ % tile_;
    }
    tiles_per_row_ = tile_ == 0 ? 0 : (row_ + tile_ - 1) / tile_;
    tiles_ = row_ == 0 ? 0 : n_ / row_ * tiles_per_row_;
    slots_ = std::max<int64_t>(1, std::min<int64_t>(NumThreads(), tiles_));
    PlaceTemporaries();
  }

  absl::Status MakeKernels(const ops::FusedBody& body, const std::vector<ir::ValueType>& inputs,
                           const KernelRegistry& registry) {
    size_t scratch = 0;
    for (const int64_t elements : {tile_, tail_}) {
      if (elements == 0) continue;
      TileKernels& kernels = elements == tile_ ? full_ : last_;
      HT_ASSIGN_OR_RETURN(kernels, MakeTile(body, inputs, accesses_, elements, registry));
      for (const auto& kernel : kernels) scratch = std::max(scratch, kernel->workspace_bytes());
    }
    scratch_at_ = slot_bytes_;
    slot_bytes_ += AlignUp(static_cast<int64_t>(scratch), kAlignment);
    workspace_bytes_ = static_cast<size_t>(repeated_bytes_ + slots_ * slot_bytes_);
    return absl::OkStatus();
  }

  void Run(const KernelArgs& args) override {
    if (tiles_ == 0) return;
    auto* const workspace = static_cast<char*>(args.workspace);
    Repeat(args, workspace);
    const int64_t grain = n_ > kWorthAThread ? 1 : slots_;
    ParallelFor(0, slots_, grain, [&](int64_t first, int64_t last) {
      for (int64_t slot = first; slot < last; ++slot) {
        char* const own = workspace + repeated_bytes_ + slot * slot_bytes_;
        for (int64_t t = tiles_ * slot / slots_; t < tiles_ * (slot + 1) / slots_; ++t) {
          RunTile(args, workspace, own, t);
        }
      }
    });
  }

 private:
  static constexpr int64_t kAlignment = 64;
  static constexpr int64_t kWorthAThread = 4096;

  // Where steps but the last leave their tiles: a tile is free again once its one reader has run.
  void PlaceTemporaries() {
    const auto steps = operands_.size();
    const int64_t slot = AlignUp(tile_ * int64_t{8}, kAlignment);
    std::vector<int> free, at(steps, -1);
    int count = 0;
    for (size_t i = 0; i + 1 < steps; ++i) {
      if (free.empty()) free.push_back(count++);
      at[i] = free.back();
      free.pop_back();
      Release(operands_[i], at, free);
    }
    for (const int place : at) offsets_.push_back(place * slot);
    slot_bytes_ = count * slot;
    for (size_t i = 0; i < accesses_.size(); ++i) {
      repeated_at_.push_back(repeated_bytes_);
      if (IsRepeated(i)) {
        repeated_bytes_ += AlignUp(tile_ * static_cast<int64_t>(sizes_[i]), kAlignment);
      }
    }
  }
  void Release(const std::vector<int>& operands, const std::vector<int>& at,
               std::vector<int>& free) const {
    for (const int operand : operands) {
      if (operand >= num_inputs_) free.push_back(at[static_cast<size_t>(operand - num_inputs_)]);
    }
  }
  // Whether an operand's row is shorter than a tile, and copied until it fills one.
  bool IsRepeated(size_t input) const {
    return repeats_ && accesses_[input].kind == Access::Kind::kRow;
  }
  void Repeat(const KernelArgs& args, char* workspace) const {
    for (size_t i = 0; i < accesses_.size(); ++i) {
      if (!IsRepeated(i)) continue;
      const auto bytes = static_cast<size_t>(accesses_[i].period) * sizes_[i];
      char* const to = workspace + repeated_at_[i];
      for (int64_t k = 0; k < tile_ / accesses_[i].period; ++k) {
        std::memcpy(to + static_cast<size_t>(k) * bytes, args.inputs[i], bytes);
      }
    }
  }

  void RunTile(const KernelArgs& args, char* workspace, char* own, int64_t tile) const {
    const int64_t column = tile % tiles_per_row_ * tile_;
    const int64_t at = tile / tiles_per_row_ * row_ + column;
    const TileKernels& kernels = row_ - column >= tile_ ? full_ : last_;
    std::array<const void*, kMaxFusedValues> values{};
    for (size_t i = 0; i < accesses_.size(); ++i) {
      const auto* x = static_cast<const char*>(args.inputs[i]);
      const auto size = static_cast<int64_t>(sizes_[i]);
      switch (accesses_[i].kind) {
        case Access::Kind::kSame:
          values[i] = x + at * size;
          break;
        case Access::Kind::kOne:
          values[i] = x;
          break;
        case Access::Kind::kChannels:
          values[i] = x + tile / tiles_per_row_ % blocks_ * ir::kChannelBlock * size;
          break;
        case Access::Kind::kRow:
          values[i] = IsRepeated(i) ? workspace + repeated_at_[i] : x + column * size;
      }
    }
    const size_t first = accesses_.size(), steps = operands_.size();
    for (size_t s = 0; s < steps; ++s) {
      std::array<const void*, ops::kMaxFusedInputs> inputs{};
      for (size_t k = 0; k < operands_[s].size(); ++k) {
        inputs[k] = values[static_cast<size_t>(operands_[s][k])];
      }
      void* y = s + 1 == steps ? static_cast<char*>(args.outputs[0]) +
                                     at * static_cast<int64_t>(sizes_[first + s])
                               : own + offsets_[s];
      values[first + s] = y;
      kernels[s]->Run({inputs.data(), &y, own + scratch_at_, args.state});
    }
  }

  int num_inputs_;
  int64_t n_, row_;
  std::vector<Access> accesses_;            // of the inputs
  std::vector<size_t> sizes_;               // of an element, of inputs and steps
  std::vector<std::vector<int>> operands_;  // of the steps
  int64_t tile_ = 0, tail_ = 0;             // elements of a tile, and of the last one of a row
  int64_t tiles_per_row_ = 0, tiles_ = 0;
  int64_t blocks_ = 1;    // of channels of an image, where rows are of one block
  bool repeats_ = false;  // whether rows are shorter than a tile
  int64_t slots_ = 1;     // parts of the tiles, one for each thread
  std::vector<int64_t> offsets_, repeated_at_;
  int64_t slot_bytes_ = 0, scratch_at_ = 0, repeated_bytes_ = 0;
  TileKernels full_, last_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeFusedKernel(const ir::Node& node,
                                                        const KernelRegistry& registry) {
  HT_ASSIGN_OR_RETURN(const ops::FusedBody body,
                      ops::FusedBody::Parse(node.attrs().GetString("body"), node.num_inputs()));
  std::vector<ir::ValueType> inputs;
  for (const ir::Value& input : node.inputs()) inputs.push_back(input.type());
  HT_ASSIGN_OR_RETURN(const std::vector<ir::ValueType> types, body.Infer(node.Label(), inputs));
  auto kernel = std::make_unique<FusedKernel>(node, body, types);
  HT_RETURN_IF_ERROR(kernel->MakeKernels(body, inputs, registry));
  return kernel;
}

}  // namespace

void Register_cpu_fused(KernelRegistry& r) {
  AddNativeCandidate(r, "tiles", "fused", ir::kAnyDType, nullptr,
                     [&r](const ir::Node& node) { return MakeFusedKernel(node, r); });
}

}  // namespace halftone::kernels
