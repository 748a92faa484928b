// Updates of bf16 parameters by the f32 loops of simd_optimizer.cc: operands are widened a block at
// a time, updated in place, and stored with the rounding of the node.
#pragma once

#include <algorithm>
#include <cstdint>

#include "halftone/graph/ops/support/optimizers.h"
#include "halftone/kernels/cpu/ops/optimizer_operands.h"
#include "halftone/kernels/cpu/simd/targets.h"
#include "halftone/kernels/cpu/simd/update_rounding.h"
#include "halftone/kernels/kernel.h"

namespace halftone::kernels {

class LowUpdate {
 public:
  // `set`: the states that there are, which begin at port `first_state`.
  LowUpdate(const ir::Node& node, unsigned set, int first_state)
      : rounding_(ops::RoundingOf(node.attrs())),
        seed_(static_cast<uint64_t>(node.attrs().GetInt("seed"))),
        set_(set),
        first_state_(first_state),
        compensation_(node.num_outputs() - 1) {
    InitSimdDispatch();
    fns_ = FindUpdateRounding();
  }

  // Calls run(operands, count) for f32 blocks of elements `begin` to `end`; the gradient of the
  // first is element `grad` of its array. `o` has the scalars. What it makes of them is stored.
  template <typename Run>
  void Update(const KernelArgs& args, const UpdateOperands& o, int64_t begin, int64_t end,
              int64_t grad, const Run& run) const {
    Block block;
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t n = std::min(kBlock, end - at);
      run(Load(args, o, at, grad + at - begin, n, &block), n);
      Store(args, static_cast<uint64_t>(o.step), at, n, block);
    }
  }
  // The same for what only looks at them.
  template <typename Run>
  void Read(const KernelArgs& args, const UpdateOperands& o, int64_t begin, int64_t end,
            const Run& run) const {
    Block block;
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t n = std::min(kBlock, end - at);
      run(Load(args, o, at, at, n, &block), n);
    }
  }

 private:
  static constexpr int64_t kBlock = 1024;  // the arrays of Adam stay in the first cache
  struct Block {
    float param[kBlock], grad[kBlock], state[UpdateOperands::kMostStates][kBlock];
  };

  static const BF16* In(const KernelArgs& args, int port, int64_t at) {
    return static_cast<const BF16*>(args.inputs[port]) + at;
  }
  static BF16* Out(const KernelArgs& args, int output, int64_t at) {
    return static_cast<BF16*>(args.outputs[output]) + at;
  }

  UpdateOperands Load(const KernelArgs& args, UpdateOperands o, int64_t at, int64_t grad, int64_t n,
                      Block* block) const {
    const BF16* const param = In(args, ops::UpdatePort::kParam, at);
    if (rounding_ == ops::UpdateRounding::kKahan) {
      fns_.compensate(param, In(args, first_state_ + compensation_ - 1, at), block->param, n);
    } else {
      fns_.widen(param, block->param, n);
    }
    fns_.widen(In(args, ops::UpdatePort::kGrad, grad), block->grad, n);
    o.param = o.new_param = block->param;
    o.grad = block->grad;
    int port = first_state_;
    for (int s = 0; s < UpdateOperands::kMostStates; ++s) {
      if ((set_ >> s & 1) == 0) continue;
      fns_.widen(In(args, port++, at), block->state[s], n);
      o.state[s] = o.new_state[s] = block->state[s];
    }
    return o;
  }

  void Store(const KernelArgs& args, uint64_t step, int64_t at, int64_t n,
             const Block& block) const {
    const auto round = [&](int output, const float* x) {
      fns_.round_stochastically({seed_, step, output}, at, x, Out(args, output, at), n);
    };
    if (rounding_ == ops::UpdateRounding::kKahan) {
      fns_.split(block.param, Out(args, 0, at), Out(args, compensation_, at), n);
    } else {
      round(0, block.param);
    }
    int output = 1;
    for (int s = 0; s < UpdateOperands::kMostStates; ++s) {
      if ((set_ >> s & 1) != 0) round(output++, block.state[s]);
    }
  }

  ops::UpdateRounding rounding_;
  uint64_t seed_;
  unsigned set_;
  int first_state_, compensation_;  // the output of the compensation; its input is as far on
  UpdateRoundingFns fns_;
};

}  // namespace halftone::kernels
