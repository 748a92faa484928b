// pad: elements of any dtype by their size. The last padded axis and those behind it are a row,
// whose middle is copied at once; where the rows and their ends come from stands in tables.
#include <algorithm>
#include <cstring>

#include "halftone/core/threads.h"
#include "halftone/graph/ops/support/padding.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/cpu/support/numeric_types.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

class PadKernel : public Kernel {
 public:
  explicit PadKernel(const ir::Node& node) : size_(SizeOf(node.output_type().dtype)) {
    const Shape &x = node.input_type(0).shape, &y = node.output_type().shape;
    const ops::PadMode mode = ops::PadModeOf(node.attrs().GetString("mode"));
    const std::vector<int64_t>& before = node.attrs().GetInts("before");
    const double value = node.attrs().GetFloat("value");
    if (IsFloat(node.output_type().dtype)) {
      StoreDouble(&value_, node.output_type().dtype, 0, value);
    } else {
      StoreInt(&value_, node.output_type().dtype, 0, static_cast<int64_t>(value));
    }
    int last = y.rank() - 1;
    for (; last >= 0 && x[last] == y[last]; --last) block_ *= y[last];
    if (y.num_elements() == 0) block_ = 0;
    if (block_ == 0) return;
    for (int i = 0; i <= last; ++i) {
      Axis axis{y[i], {}};
      const int64_t stride = i == last ? 1 : x.strides()[i] / block_;
      for (int64_t k = 0; k < y[i]; ++k) {
        const int64_t from = ops::PaddedFrom(mode, k, before[i], x[i]);
        axis.from.push_back(from < 0 ? -1 : from * stride);
      }
      if (i == last) {
        row_ = std::move(axis);
        middle_ = before[i];
        middle_end_ = before[i] + x[i];
      } else {
        outer_.push_back(std::move(axis));
        rows_ *= y[i];
      }
    }
  }

  void Run(const KernelArgs& args) override {
    if (row_.extent * block_ == 0) return;
    ForElementSize(size_, [&](auto zero) {
      using T = decltype(zero);
      T value;
      std::memcpy(&value, &value_, sizeof(value));
      RunAs(static_cast<const T*>(args.inputs[0]), static_cast<T*>(args.outputs[0]), value);
    });
  }

 private:
  struct Axis {
    int64_t extent = 1;
    std::vector<int64_t> from = {0};  // in blocks; -1: the value
  };

  template <typename T>
  void RunAs(const T* x, T* y, T value) const {
    const int64_t width = row_.extent * block_;
    const int64_t grain = std::max<int64_t>(1, 4 * kElementwiseGrain / width);
    ParallelFor(0, rows_, grain, [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row) {
        int64_t from = 0, rest = row;
        for (size_t i = outer_.size(); i-- > 0 && from >= 0;) {
          const int64_t of_axis = outer_[i].from[static_cast<size_t>(rest % outer_[i].extent)];
          rest /= outer_[i].extent;
          from = of_axis < 0 ? -1 : from + of_axis;
        }
        T* to = y + row * width;
        if (from < 0) {
          std::fill_n(to, width, value);
          continue;
        }
        Move(x + from * block_, to, 0, middle_, value);
        std::memcpy(to + middle_ * block_, x + from * block_,
                    static_cast<size_t>((middle_end_ - middle_) * block_) * sizeof(T));
        Move(x + from * block_, to, middle_end_, row_.extent, value);
      }
    });
  }

  // Positions [begin, end) of a row.
  template <typename T>
  void Move(const T* x, T* to, int64_t begin, int64_t end, T value) const {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t from = row_.from[static_cast<size_t>(k)];
      if (from < 0) {
        std::fill_n(to + k * block_, block_, value);
      } else {
        std::copy_n(x + from * block_, block_, to + k * block_);
      }
    }
  }

  size_t size_;
  uint64_t value_ = 0;
  int64_t block_ = 1;  // elements behind the last padded axis
  int64_t rows_ = 1;
  std::vector<Axis> outer_;
  Axis row_;
  int64_t middle_ = 0, middle_end_ = 1;  // of a row: what is x itself
};

}  // namespace

void Register_cpu_pad(KernelRegistry& r) {
  AddNativeCandidate<PadKernel>(r, "copy", "pad", ir::kAnyDType, PlainInputs);
}

}  // namespace halftone::kernels
