// batch_norm, its two parts, batch_norm_inference, batch_norm_grad, for operands of any layout. oneDNN's
// batch normalisation is not used: it keeps the variance where we keep 1 / sqrt(var + eps).
//
// Statistics: exact enough in f32 over a block (rows of channels, or one channel of one image), in
// two passes over the cache, then combined over blocks in f64. Blocks depend on the shape alone.
#include <algorithm>
#include <cmath>

#include "halftone/core/threads.h"
#include "halftone/graph/ops/support/fused_body.h"
#include "halftone/kernels/cpu/simd/batch_norm_fns.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

// How x [N, C, ...] lies: as `sheets` of [rows, width], `width` channels side by side at `rows`
// positions. Channels-last, and rank 2, are one sheet; channels in blocks one for each block of an image;
// plain values one of width 1 for each channel of an image.
struct BatchNormShape {
  explicit BatchNormShape(const ir::ValueType& x)
      : dtype(x.dtype), size(static_cast<int64_t>(SizeOf(dtype))), channels(x.shape[1]) {
    int64_t positions = 1;
    for (int i = 2; i < x.shape.rank(); ++i) positions *= x.shape[i];
    per_channel = x.shape[0] * positions;
    const bool last = x.layout == ir::Layout::kChannelsLast || x.shape.rank() == 2;
    if (last) {
      width = channels;
      rows = per_channel;
    } else {
      is_plain = x.layout == ir::Layout::kPlain;
      width = is_plain ? 1 : ir::kChannelBlock;
      rows = positions;
      sheets_of_image = channels / width;
      sheets = x.shape[0] * sheets_of_image;
    }
    parts = is_plain ? 1 : (rows + kBlockRows - 1) / kBlockRows;
    blocks = sheets / std::max<int64_t>(1, sheets_of_image) * parts;
  }
  // Positions of block `b`, of the `blocks` of each channel.
  int64_t BlockCount(int64_t b) const {
    return is_plain ? rows : std::min(kBlockRows, rows - b % parts * kBlockRows);
  }
  int64_t ChannelOf(int64_t sheet) const { return sheet % sheets_of_image * width; }

  // Calls fn(at, rows, block, channel) for each block of each sheet, which starts `at` bytes into x.
  template <typename Fn>
  void ForBlocks(const Fn& fn) const {
    const int64_t of_task = is_plain ? rows : std::min(rows, kBlockRows);
    const int64_t grain = std::max<int64_t>(1, RowGrain() / std::max<int64_t>(1, of_task));
    ParallelFor(0, sheets * parts, grain, [&](int64_t first, int64_t last) {
      for (int64_t task = first; task < last; ++task) {
        const int64_t sheet = task / parts, part = task % parts;
        const int64_t block = sheet / sheets_of_image * parts + part;
        fn((sheet * rows + part * kBlockRows) * width * size, BlockCount(block), block,
           ChannelOf(sheet));
      }
    });
  }
  // Calls fn(at, rows, channel) for pieces of sheets.
  template <typename Fn>
  void ForRows(const Fn& fn) const {
    ParallelFor(0, sheets * rows, RowGrain(), [&](int64_t first, int64_t last) {
      while (first < last) {
        const int64_t sheet = first / rows, end = std::min(last, (sheet + 1) * rows);
        fn(first * width * size, end - first, ChannelOf(sheet));
        first = end;
      }
    });
  }

  static constexpr int64_t kBlockRows = 128;
  DType dtype;
  int64_t size, channels, per_channel = 0;
  int64_t width = 1, rows = 1, sheets = 1, sheets_of_image = 1;
  int64_t parts = 1;   // that the rows of a sheet are cut into
  int64_t blocks = 1;  // of a channel
  bool is_plain = false;

 private:
  int64_t RowGrain() const {
    return std::max<int64_t>(1, kElementwiseGrain / std::max<int64_t>(1, width));
  }
};

const char* At(const void* data, int64_t bytes) { return static_cast<const char*>(data) + bytes; }
char* At(void* data, int64_t bytes) { return static_cast<char*>(data) + bytes; }

const float* Floats(const KernelArgs& args, int port) {
  return static_cast<const float*>(args.inputs[port]);
}
float* MutableFloats(const KernelArgs& args, int port) {
  return static_cast<float*>(args.outputs[port]);
}

// What both forms of the normalisation end in.
void ApplyBatchNorm(const BatchNormShape& s, const BatchNormFns& fns, const void* x, void* y,
                    const BatchNormApply& p) {
  s.ForRows([&](int64_t at, int64_t rows, int64_t c) {
    const BatchNormApply own{p.mean_high + c, p.mean_low + c, p.scale + c, p.shift + c};
    if (s.is_plain) {
      fns.row_apply(At(x, at), At(y, at), rows, own);
    } else {
      fns.apply(At(x, at), At(y, at), rows, s.width, own);
    }
  });
}

// Of a batch, per channel: arrays that BatchNormStatistics reads and writes. The new running statistics
// may be the old ones in place.
struct BatchNormArrays {
  const float *gamma, *running_mean, *running_var;
  float *save_mean, *save_invstd, *new_mean, *new_var;
  float *low, *scale;  // for BatchNormApply, whose mean_high is save_mean
};

class BatchNormStatistics {
 public:
  BatchNormStatistics(const BatchNormShape& shape, const ir::Attributes& attrs)
      : s_(shape),
        fns_(FindBatchNormFns(s_.dtype)),
        eps_(attrs.GetFloat("eps")),
        momentum_(attrs.GetFloat("momentum")) {}

  size_t workspace_bytes() const {
    return static_cast<size_t>(s_.blocks * s_.channels) * sizeof(Moments);
  }

  void Run(const void* x, const BatchNormArrays& a, void* workspace) const {
    auto* blocks = static_cast<Moments*>(workspace);
    BlockMoments(x, blocks);
    const auto n = static_cast<double>(s_.per_channel);
    ParallelFor(0, s_.channels, kCombineGrain, [&](int64_t first, int64_t last) {
      for (int64_t c = first; c < last; ++c) {
        const Moments all = Combined(blocks, c);
        const double var = all.m2 / n, invstd = 1 / std::sqrt(var + eps_);
        const SplitMean mean(all.mean);
        a.save_mean[c] = mean.high;
        a.low[c] = mean.low;
        a.scale[c] = static_cast<float>(invstd * a.gamma[c]);
        a.save_invstd[c] = static_cast<float>(invstd);
        a.new_mean[c] =
            static_cast<float>((1 - momentum_) * a.running_mean[c] + momentum_ * all.mean);
        a.new_var[c] =
            static_cast<float>((1 - momentum_) * a.running_var[c] + momentum_ * var * n / (n - 1));
      }
    });
  }

 private:
  static constexpr int64_t kCombineGrain = 16;

  void BlockMoments(const void* x, Moments* moments) const {
    s_.ForBlocks([&](int64_t at, int64_t rows, int64_t block, int64_t channel) {
      Moments* const to = moments + block * s_.channels + channel;
      if (s_.is_plain) {
        *to = fns_.row_moments(At(x, at), rows);
        return;
      }
      for (int64_t c = 0; c < s_.width; c += kNormTile) {
        fns_.moments(At(x, at + c * s_.size), s_.width, rows, std::min(kNormTile, s_.width - c),
                     to + c);
      }
    });
  }

  Moments Combined(const Moments* blocks, int64_t c) const {
    Moments all;
    for (int64_t b = 0; b < s_.blocks; ++b) {
      all.mean += blocks[b * s_.channels + c].mean * static_cast<double>(s_.BlockCount(b));
    }
    all.mean /= static_cast<double>(s_.per_channel);
    for (int64_t b = 0; b < s_.blocks; ++b) {
      const Moments& block = blocks[b * s_.channels + c];
      const double off = block.mean - all.mean;
      all.m2 += block.m2 + off * off * static_cast<double>(s_.BlockCount(b));
    }
    return all;
  }

  BatchNormShape s_;
  BatchNormFns fns_;
  double eps_, momentum_;
};

class BatchNormKernel : public Kernel {
 public:
  explicit BatchNormKernel(const ir::Node& node)
      : s_(node.input_type(0)), fns_(FindBatchNormFns(s_.dtype)), statistics_(s_, node.attrs()) {
    workspace_bytes_ = statistics_.workspace_bytes() + 2 * s_.channels * sizeof(float);
  }

  void Run(const KernelArgs& args) override {
    auto* low = reinterpret_cast<float*>(
        At(args.workspace, static_cast<int64_t>(statistics_.workspace_bytes())));
    float* scale = low + s_.channels;
    float* save_mean = MutableFloats(args, 1);
    statistics_.Run(
        args.inputs[0],
        {Floats(args, 1), Floats(args, 3), Floats(args, 4), save_mean, MutableFloats(args, 2),
         MutableFloats(args, 3), MutableFloats(args, 4), low, scale},
        args.workspace);
    ApplyBatchNorm(s_, fns_, args.inputs[0], args.outputs[0],
                   {save_mean, low, scale, Floats(args, 2)});
  }

 private:
  BatchNormShape s_;
  BatchNormFns fns_;
  BatchNormStatistics statistics_;
};

class BatchNormStatsKernel : public Kernel {
 public:
  explicit BatchNormStatsKernel(const ir::Node& node)
      : statistics_(BatchNormShape(node.input_type(0)), node.attrs()) {
    workspace_bytes_ = statistics_.workspace_bytes();
  }

  void Run(const KernelArgs& args) override {
    statistics_.Run(args.inputs[0],
                    {Floats(args, 1), Floats(args, 2), Floats(args, 3), MutableFloats(args, 0),
                     MutableFloats(args, 1), MutableFloats(args, 2), MutableFloats(args, 3),
                     MutableFloats(args, 4), MutableFloats(args, 5)},
                    args.workspace);
  }

 private:
  BatchNormStatistics statistics_;
};

// The numbers are as many as the channels of a row, or as the elements of x.
class BatchNormApplyRows : public Kernel {
 public:
  explicit BatchNormApplyRows(const ir::Node& node)
      : fns_(FindBatchNormFns(node.input_type(0).dtype)),
        size_(static_cast<int64_t>(SizeOf(node.input_type(0).dtype))),
        row_(node.input_type(1).num_elements()),
        rows_(row_ == 0 ? 0 : node.output_type().num_elements() / row_) {}

  void Run(const KernelArgs& args) override {
    const BatchNormApply p{Floats(args, 1), Floats(args, 2), Floats(args, 3), Floats(args, 4)};
    const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / std::max<int64_t>(1, row_));
    ParallelFor(0, rows_, grain, [&](int64_t first, int64_t last) {
      const int64_t at = first * row_ * size_;
      fns_.apply(At(args.inputs[0], at), At(args.outputs[0], at), last - first, row_, p);
    });
  }

 private:
  BatchNormFns fns_;
  int64_t size_, row_, rows_;
};

// The numbers are those of the channels of an image.
class BatchNormApplyImages : public Kernel {
 public:
  explicit BatchNormApplyImages(const ir::Node& node)
      : s_(node.input_type(0)), fns_(FindBatchNormFns(s_.dtype)) {}

  void Run(const KernelArgs& args) override {
    ApplyBatchNorm(s_, fns_, args.inputs[0], args.outputs[0],
                   {Floats(args, 1), Floats(args, 2), Floats(args, 3), Floats(args, 4)});
  }

 private:
  BatchNormShape s_;
  BatchNormFns fns_;
};

std::unique_ptr<Kernel> MakeBatchNormApply(const ir::Node& node) {
  const auto access = ops::AccessOf(node.input_type(1), node.output_type());
  if (access->kind == ops::FusedAccess::Kind::kChannels) {
    return std::make_unique<BatchNormApplyImages>(node);
  }
  return std::make_unique<BatchNormApplyRows>(node);
}

// Whether the numbers are those of the innermost axes, or of channels in blocks.
absl::Status NumbersAreRows(const ir::Node& node) {
  HT_RETURN_IF_ERROR(LayoutOfInput(node));
  const auto access = ops::AccessOf(node.input_type(1), node.output_type());
  if (!access.has_value()) return Unimplemented("channels are not innermost");
  return absl::OkStatus();
}

class BatchNormInferenceKernel : public Kernel {
 public:
  explicit BatchNormInferenceKernel(const ir::Node& node)
      : s_(node.input_type(0)),
        fns_(FindBatchNormFns(s_.dtype)),
        eps_(node.attrs().GetFloat("eps")) {
    workspace_bytes_ = 2 * s_.channels * sizeof(float);
  }

  // y may be x in place.
  void Run(const KernelArgs& args) override {
    auto* scale = static_cast<float*>(args.workspace);
    float* no_low = scale + s_.channels;
    for (int64_t c = 0; c < s_.channels; ++c) {
      const double invstd = 1 / std::sqrt(Floats(args, 4)[c] + eps_);
      scale[c] = static_cast<float>(invstd * Floats(args, 1)[c]);
      no_low[c] = 0;
    }
    ApplyBatchNorm(s_, fns_, args.inputs[0], args.outputs[0],
                   {Floats(args, 3), no_low, scale, Floats(args, 2)});
  }

 private:
  BatchNormShape s_;
  BatchNormFns fns_;
  double eps_;
};

class BatchNormGradKernel : public Kernel {
 public:
  explicit BatchNormGradKernel(const ir::Node& node)
      : s_(node.input_type(0)), fns_(FindBatchNormFns(s_.dtype)) {
    workspace_bytes_ =
        2 * s_.blocks * s_.channels * sizeof(double) + 3 * s_.channels * sizeof(float);
  }

  void Run(const KernelArgs& args) override {
    const void* x = args.inputs[0];
    const void* dy = args.inputs[1];
    const float* mean = Floats(args, 3);
    auto* dy_sums = static_cast<double*>(args.workspace);
    double* dyx_sums = dy_sums + s_.blocks * s_.channels;
    BlockSums(x, dy, mean, dy_sums, dyx_sums);
    auto* scale = reinterpret_cast<float*>(dyx_sums + s_.blocks * s_.channels);
    float *offset = scale + s_.channels, *slope = offset + s_.channels;
    auto* dgamma = static_cast<float*>(args.outputs[1]);
    auto* dbeta = static_cast<float*>(args.outputs[2]);
    const auto n = static_cast<double>(s_.per_channel);
    for (int64_t c = 0; c < s_.channels; ++c) {
      double dy_sum = 0, dyx_sum = 0;
      for (int64_t b = 0; b < s_.blocks; ++b) {
        dy_sum += dy_sums[b * s_.channels + c];
        dyx_sum += dyx_sums[b * s_.channels + c];
      }
      const double invstd = Floats(args, 4)[c];
      dgamma[c] = static_cast<float>(dyx_sum * invstd);
      dbeta[c] = static_cast<float>(dy_sum);
      scale[c] = static_cast<float>(Floats(args, 2)[c] * invstd);
      offset[c] = static_cast<float>(dy_sum / n);
      slope[c] = static_cast<float>(dyx_sum / n * invstd * invstd);
    }
    Apply(x, dy, args.outputs[0], {mean, scale, offset, slope});
  }

 private:
  void BlockSums(const void* x, const void* dy, const float* mean, double* dy_sums,
                 double* dyx_sums) const {
    s_.ForBlocks([&](int64_t at, int64_t rows, int64_t block, int64_t channel) {
      const int64_t to = block * s_.channels + channel;
      if (s_.is_plain) {
        fns_.row_grad_sums(At(x, at), At(dy, at), rows, mean[channel], dy_sums + to, dyx_sums + to);
        return;
      }
      for (int64_t c = 0; c < s_.width; c += kNormTile) {
        fns_.grad_sums(At(x, at + c * s_.size), At(dy, at + c * s_.size), s_.width, rows,
                       std::min(kNormTile, s_.width - c), mean + channel + c, dy_sums + to + c,
                       dyx_sums + to + c);
      }
    });
  }

  void Apply(const void* x, const void* dy, void* dx, const BatchNormGradApply& p) const {
    s_.ForRows([&](int64_t at, int64_t rows, int64_t c) {
      const BatchNormGradApply own{p.mean + c, p.scale + c, p.offset + c, p.slope + c};
      if (s_.is_plain) {
        fns_.row_grad_apply(At(x, at), At(dy, at), At(dx, at), rows, own);
      } else {
        fns_.grad_apply(At(x, at), At(dy, at), At(dx, at), rows, s_.width, own);
      }
    });
  }

  BatchNormShape s_;
  BatchNormFns fns_;
};

absl::Status OneLayoutOfX(const ir::Node& node) {
  const ir::Layout layout = node.output_type().layout;
  for (const ir::Value& v : node.inputs()) {
    if (v.shape() == node.output_type().shape && v.type().layout != layout) {
      return Unimplemented("layouts differ");
    }
  }
  return absl::OkStatus();
}

}  // namespace

void Register_cpu_batch_norm(KernelRegistry& r) {
  AddSimdCandidate<BatchNormKernel>(r, "batch_norm", OneLayoutOfX);
  AddSimdCandidate<BatchNormStatsKernel>(r, "batch_norm_stats", nullptr);
  AddNativeCandidate(r, "simd", "batch_norm_apply", {DType::kF32, DType::kF16, DType::kBF16},
                     NumbersAreRows,
                     [](const ir::Node& node) -> absl::StatusOr<std::unique_ptr<Kernel>> {
                       return MakeBatchNormApply(node);
                     });
  AddSimdCandidate<BatchNormInferenceKernel>(r, "batch_norm_inference", OneLayoutOfX);
  AddSimdCandidate<BatchNormGradKernel>(r, "batch_norm_grad", OneLayoutOfX);
}

}  // namespace halftone::kernels
