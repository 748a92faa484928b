#include "halftone/kernels/cuda/runtime/copy_plan.h"

#include <algorithm>

#include "halftone/kernels/cuda/device/strided_plan.h"

namespace halftone::cuda {
namespace {

constexpr int kTo = 0, kFrom = 1;  // as in the axes
constexpr int64_t kPiece = 16;     // bytes of the widest access
// A tile of 32 by 32 with fewer rows or columns leaves most of its threads idle.
constexpr int64_t kLeastTransposed = 8;

// The index's operands are the source and the target: the axes' in reverse.
CopyParams ParamsOf(std::vector<StridedAxis> axes, int element_size, const CopyView& view) {
  for (StridedAxis& axis : axes) axis.strides[2] = axis.strides[kTo];
  CopyParams p;
  p.element_size = element_size;
  p.from_offset = view.from_offset;
  p.to_offset = view.to_offset;
  p.size = 1;
  for (const StridedAxis& axis : axes) p.size *= axis.extent;
  p.index = MakeIndex<2>(axes, kFrom);
  return p;
}

// Elements joined to as many as a power of two and 16 bytes allow, where both sides are runs.
CopyParams Widened(std::vector<StridedAxis> axes, int element_size, CopyView view) {
  const auto divides = [&](int64_t factor) {
    if (element_size * factor > kPiece || axes.back().extent % factor != 0) return false;
    if (view.from_offset % factor != 0 || view.to_offset % factor != 0) return false;
    return std::all_of(axes.begin(), axes.end() - 1, [factor](const StridedAxis& axis) {
      return axis.strides[kTo] % factor == 0 && axis.strides[kFrom] % factor == 0;
    });
  };
  int64_t factor = 1;
  while (divides(factor * 2)) factor *= 2;
  for (auto axis = axes.begin(); axis != axes.end() - 1; ++axis) {
    axis->strides[kTo] /= factor;
    axis->strides[kFrom] /= factor;
  }
  axes.back().extent /= factor;
  view.from_offset /= factor;
  view.to_offset /= factor;
  return ParamsOf(axes, element_size * static_cast<int>(factor), view);
}

// Pieces of 16 bytes of the target, or nothing where they do not fit.
std::optional<CopyParams> Filled(std::vector<StridedAxis> axes, int element_size, CopyView view) {
  const int64_t factor = kPiece / element_size;
  if (axes.back().extent % factor != 0 || view.to_offset % factor != 0) return std::nullopt;
  axes.back().extent /= factor;
  view.to_offset /= factor;
  for (auto axis = axes.begin(); axis != axes.end() - 1; ++axis) {
    if (axis->strides[kTo] % factor != 0) return std::nullopt;
    axis->strides[kTo] /= factor;
  }
  CopyParams p = ParamsOf(axes, element_size, view);
  p.mode = CopyMode::kFill;
  return p;
}

// Whether all runs of one side begin at an even element.
bool EvenRuns(const std::vector<StridedAxis>& axes, int side, int64_t offset, int64_t stride) {
  return offset % 2 == 0 && stride % 2 == 0 &&
         std::all_of(axes.begin(), axes.end(),
                     [side](const StridedAxis& axis) { return axis.strides[side] % 2 == 0; });
}

// Tiles between the target's inner axis and the source's, or nothing.
std::optional<CopyParams> Transposed(std::vector<StridedAxis> axes, int element_size,
                                     const CopyView& view) {
  const StridedAxis rows = axes.back();
  axes.pop_back();
  const auto found = std::find_if(axes.begin(), axes.end(),
                                  [](const StridedAxis& axis) { return axis.strides[kFrom] == 1; });
  if (found == axes.end()) return std::nullopt;
  const StridedAxis columns = *found;
  axes.erase(found);
  if (std::min(rows.extent, columns.extent) < kLeastTransposed) return std::nullopt;
  if (axes.empty()) axes.push_back({1, {}});
  CopyParams p = ParamsOf(axes, element_size, view);
  p.mode = CopyMode::kTranspose;
  p.rows = rows.extent;
  p.from_stride = rows.strides[kFrom];
  p.columns = columns.extent;
  p.to_stride = columns.strides[kTo];
  p.from_pairs = EvenRuns(axes, kFrom, view.from_offset, p.from_stride);
  p.to_pairs = EvenRuns(axes, kTo, view.to_offset, p.to_stride);
  return p;
}

}  // namespace

StridedCopy::StridedCopy(int element_size, const CopyView& view)
    : from_byte_(view.from_offset * element_size), to_byte_(view.to_offset * element_size) {
  std::vector<StridedAxis> axes;
  for (size_t i = 0; i < view.extents.size(); ++i) {
    if (view.extents[i] == 0) empty_ = true;
    axes.push_back({view.extents[i], {view.to_strides[i], view.from_strides[i]}});
  }
  if (empty_) return;
  axes = CollapseAxes(axes);
  const StridedAxis& inner = axes.back();
  const bool to_run = inner.strides[kTo] == 1;
  if (axes.size() == 1 && to_run && inner.strides[kFrom] == 1) {
    contiguous_bytes_ = inner.extent * element_size;
    return;
  }
  narrow_ = wide_ = ParamsOf(axes, element_size, view);
  if (!to_run) return;
  if (inner.strides[kFrom] == 1) {
    wide_ = Widened(axes, element_size, view);
  } else if (inner.strides[kFrom] == 0) {
    wide_ = Filled(axes, element_size, view).value_or(narrow_);
  } else {
    narrow_ = wide_ = Transposed(axes, element_size, view).value_or(narrow_);
    narrow_.from_pairs = narrow_.to_pairs = false;
  }
}

std::optional<CopyMode> StridedCopy::mode() const {
  if (contiguous_bytes_ > 0) return std::nullopt;
  return wide_.mode;
}

absl::Status StridedCopy::Launch(const void* from, void* to, cudaStream_t stream) const {
  if (empty_) return absl::OkStatus();
  if (contiguous_bytes_ > 0) {
    HT_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
        static_cast<char*>(to) + to_byte_, static_cast<const char*>(from) + from_byte_,
        static_cast<size_t>(contiguous_bytes_), cudaMemcpyDeviceToDevice, stream));
    return absl::OkStatus();
  }
  HT_CUDA_RETURN_IF_ERROR(LaunchCopy(Aligned16({from, to}) ? wide_ : narrow_, from, to, stream));
  return absl::OkStatus();
}

}  // namespace halftone::cuda
