// upsample2d and its gradient, a plane at a time. What a row and a column read stands in tables.
// Forward the two rows of a row of y are blended first, then its columns; the gradient goes the
// other way, into sums of f64. f32 arithmetic for 16 bit, whose rows are converted on the way.
#include <algorithm>

#include "halftone/core/threads.h"
#include "halftone/kernels/cpu/simd/convert.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/resampled_axis.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

struct Resampling {
  Resampling(const ir::Node& node, const Shape& image)
      : planes(image[0] * image[1]),
        h(ResampledAxisOf(node.attrs(), image, 0)),
        w(ResampledAxisOf(node.attrs(), image, 1)),
        dtype(node.output_type().dtype),
        size(static_cast<int64_t>(SizeOf(dtype))) {
    const auto table = [](const ops::ResampledAxis& axis, std::vector<ops::Tap>* taps) {
      for (int64_t o = 0; o < axis.output; ++o) taps->push_back(axis.at(o, axis.step()));
    };
    if (planes == 0) return;
    table(h, &rows);
    table(w, &columns);
    slots = std::min<int64_t>(planes, NumThreads());
  }

  // Calls run(plane, slot) for every plane.
  template <typename Run>
  void ForPlanes(const Run& run) const {
    const bool small = planes * (h.output * w.output + h.input * w.input) < kElementwiseGrain;
    ParallelFor(0, slots, small ? std::max<int64_t>(1, slots) : 1,
                [&](int64_t first, int64_t last) {
                  for (int64_t slot = first; slot < last; ++slot) {
                    for (int64_t plane = slot; plane < planes; plane += slots) run(plane, slot);
                  }
                });
  }

  int64_t planes;
  ops::ResampledAxis h, w;
  DType dtype;
  int64_t size;
  std::vector<ops::Tap> rows, columns;
  int64_t slots = 0;
};

// `n` elements of `dtype` as T: in place, or converted into `room`.
template <typename T>
const T* RowAs(const void* data, DType dtype, int64_t n, T* room) {
  if constexpr (std::is_same_v<T, float>) {
    if (dtype != DType::kF32) {
      Convert(data, dtype, room, DType::kF32, n);
      return room;
    }
  }
  return static_cast<const T*>(data);
}

class UpsampleKernel : public Kernel {
 public:
  explicit UpsampleKernel(const ir::Node& node) : r_(node, node.input_type(0).shape) {
    room_ = 3 * r_.w.input + r_.w.output;
    workspace_bytes_ = static_cast<size_t>(r_.slots * room_) * sizeof(double);
  }

  void Run(const KernelArgs& args) override {
    if (r_.dtype == DType::kF64) return RunAs<double>(args);
    return RunAs<float>(args);
  }

 private:
  template <typename T>
  void RunAs(const KernelArgs& args) const {
    r_.ForPlanes([&](int64_t plane, int64_t slot) {
      T* const blended = static_cast<T*>(args.workspace) + slot * room_;
      T *const low_room = blended + r_.w.input, *const high_room = low_room + r_.w.input;
      T* const made = high_room + r_.w.input;
      const char* x =
          static_cast<const char*>(args.inputs[0]) + plane * r_.h.input * r_.w.input * r_.size;
      char* y = static_cast<char*>(args.outputs[0]) + plane * r_.h.output * r_.w.output * r_.size;
      for (const ops::Tap& row : r_.rows) {
        const T* low = RowAs(x + row.low * r_.w.input * r_.size, r_.dtype, r_.w.input, low_room);
        const T* from = low;
        if (row.weight != 0 && row.high != row.low) {
          const T* high =
              RowAs(x + row.high * r_.w.input * r_.size, r_.dtype, r_.w.input, high_room);
          const T b = static_cast<T>(row.weight), a = 1 - b;
          for (int64_t j = 0; j < r_.w.input; ++j) blended[j] = a * low[j] + b * high[j];
          from = blended;
        }
        const bool direct = sizeof(T) == static_cast<size_t>(r_.size);
        T* to = direct ? reinterpret_cast<T*>(y) : made;
        BlendColumns(from, to);
        if (!direct) Convert(made, DType::kF32, y, r_.dtype, r_.w.output);
        y += r_.w.output * r_.size;
      }
    });
  }

  template <typename T>
  void BlendColumns(const T* from, T* to) const {
    if (r_.w.nearest) {
      for (size_t j = 0; j < r_.columns.size(); ++j) to[j] = from[r_.columns[j].low];
      return;
    }
    for (size_t j = 0; j < r_.columns.size(); ++j) {
      const ops::Tap& column = r_.columns[j];
      const T b = static_cast<T>(column.weight);
      const T low = from[column.low];
      to[j] = b == 0 ? low : (1 - b) * low + b * from[column.high];
    }
  }

  Resampling r_;
  int64_t room_;
};

class UpsampleGradKernel : public Kernel {
 public:
  explicit UpsampleGradKernel(const ir::Node& node) : r_(node, node.output_type().shape) {
    room_ = (r_.h.input + 1) * r_.w.input + r_.w.output;
    workspace_bytes_ = static_cast<size_t>(r_.slots * room_) * sizeof(double);
  }

  void Run(const KernelArgs& args) override {
    if (r_.dtype == DType::kF64) return RunAs<double>(args);
    return RunAs<float>(args);
  }

 private:
  template <typename T>
  void RunAs(const KernelArgs& args) const {
    const int64_t width = r_.w.input, of_plane = r_.h.input * width;
    r_.ForPlanes([&](int64_t plane, int64_t slot) {
      double* const sums = static_cast<double*>(args.workspace) + slot * room_;
      double* const row_sums = sums + of_plane;
      T* const room = reinterpret_cast<T*>(row_sums + width);
      const char* dy =
          static_cast<const char*>(args.inputs[0]) + plane * r_.h.output * r_.w.output * r_.size;
      std::fill_n(sums, of_plane, 0.0);
      for (const ops::Tap& row : r_.rows) {
        AddColumns(RowAs(dy, r_.dtype, r_.w.output, room), row_sums);
        AddRow(row_sums, 1 - row.weight, sums + row.low * width);
        AddRow(row_sums, row.weight, sums + row.high * width);
        dy += r_.w.output * r_.size;
      }
      char* dx = static_cast<char*>(args.outputs[0]) + plane * of_plane * r_.size;
      for (int64_t i = 0; i < of_plane; ++i) {
        if (r_.dtype == DType::kF32) {
          reinterpret_cast<float*>(dx)[i] = static_cast<float>(sums[i]);
        } else {
          StoreDouble(dx, r_.dtype, i, sums[i]);
        }
      }
    });
  }

  template <typename T>
  void AddColumns(const T* dy, double* sums) const {
    std::fill_n(sums, r_.w.input, 0.0);
    for (size_t j = 0; j < r_.columns.size(); ++j) {
      const ops::Tap& column = r_.columns[j];
      const double value = static_cast<double>(dy[j]);
      if (column.weight != 1) sums[column.low] += (1 - column.weight) * value;
      if (column.weight != 0) sums[column.high] += column.weight * value;
    }
  }

  void AddRow(const double* row, double weight, double* sums) const {
    if (weight == 0) return;
    for (int64_t j = 0; j < r_.w.input; ++j) sums[j] += weight * row[j];
  }

  Resampling r_;
  int64_t room_;
};

}  // namespace

void Register_cpu_upsample2d(KernelRegistry& r) {
  AddNativeCandidate<UpsampleKernel>(r, "lines", "upsample2d", ir::kFloats, PlainInputs);
  AddNativeCandidate<UpsampleGradKernel>(r, "lines", "upsample2d_grad", ir::kFloats, PlainInputs);
}

}  // namespace halftone::kernels
