// sort: every line along the axis by (key, place), which are all different: any way of sorting them
// is stable. The first k of many are selected and then sorted; whole long lines of keys of 32 bits
// take a radix sort.
#include <algorithm>
#include <utility>

#include "halftone/core/threads.h"
#include "halftone/kernels/axis_split.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/cpu/support/numeric_types.h"
#include "halftone/kernels/sort_key.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

constexpr int64_t kRadixLine = 512;  // elements from which on a radix sort is the faster one

// A key of 32 bits and a place in one number.
struct NarrowEntry {
  uint64_t both;
  NarrowEntry(uint32_t key, int64_t place)
      : both(uint64_t{key} << 32 | static_cast<uint64_t>(place)) {}
  int64_t place() const { return static_cast<int64_t>(both & 0xFFFFFFFF); }
  bool operator<(const NarrowEntry& other) const { return both < other.both; }
};
struct WideEntry {
  uint64_t key;
  int64_t at;
  WideEntry(uint64_t sort_key, int64_t place) : key(sort_key), at(place) {}
  int64_t place() const { return at; }
  bool operator<(const WideEntry& other) const {
    return key != other.key ? key < other.key : at < other.at;
  }
};

// By the keys alone, a byte at a time from the last; equal keys stay in order. Gives where the
// result is: `entries` or `other`. Source: Knuth, "The Art of Computer Programming" 3, 5.2.5.
NarrowEntry* RadixSort(NarrowEntry* entries, NarrowEntry* other, int64_t n) {
  int64_t counts[4][256] = {};
  for (int64_t i = 0; i < n; ++i) {
    for (int digit = 0; digit < 4; ++digit) {
      ++counts[digit][entries[i].both >> (32 + 8 * digit) & 0xFF];
    }
  }
  for (int digit = 0; digit < 4; ++digit) {
    const int shift = 32 + 8 * digit;
    int64_t* next = counts[digit];
    if (next[entries[0].both >> shift & 0xFF] == n) continue;  // all alike
    int64_t start = 0;
    for (int value = 0; value < 256; ++value) start += std::exchange(next[value], start);
    for (int64_t i = 0; i < n; ++i) other[next[entries[i].both >> shift & 0xFF]++] = entries[i];
    std::swap(entries, other);
  }
  return entries;
}

template <typename Entry>
const Entry* SortFirst(Entry* entries, [[maybe_unused]] Entry* other, int64_t n, int64_t k) {
  if (k < n) {
    std::nth_element(entries, entries + k, entries + n);
  } else if constexpr (std::is_same_v<Entry, NarrowEntry>) {
    if (n >= kRadixLine) return RadixSort(entries, other, n);
  }
  std::sort(entries, entries + k);
  return entries;
}

class SortKernel : public Kernel {
 public:
  explicit SortKernel(const ir::Node& node)
      : x_(node.input_type(0).shape, node.attrs().GetInt("axis")),
        y_(node.output_type(0).shape, node.attrs().GetInt("axis")),
        dtype_(node.input_type(0).dtype),
        descending_(node.attrs().GetBool("descending")) {
    lines_ = x_.outer * x_.inner;
    slots_ = std::min<int64_t>(lines_, NumThreads());
    static_assert(sizeof(WideEntry) == 2 * sizeof(NarrowEntry));
    workspace_bytes_ = static_cast<size_t>(slots_ * x_.size) * sizeof(WideEntry);
  }

  void Run(const KernelArgs& args) override {
    if (y_.elements() == 0) return;
    const bool small = x_.elements() < kElementwiseGrain / 4;
    ForNumericType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      ParallelFor(0, slots_, small ? slots_ : 1, [&](int64_t first, int64_t last) {
        for (int64_t slot = first; slot < last; ++slot) {
          void* room = static_cast<WideEntry*>(args.workspace) + slot * x_.size;
          for (int64_t line = slot; line < lines_; line += slots_) SortLine<T>(args, line, room);
        }
      });
    });
  }

 private:
  template <typename T>
  static auto KeyOf(T x) {
    if constexpr (std::is_same_v<T, F16> || std::is_same_v<T, BF16>) {
      return OrderedKey(static_cast<float>(x));
    } else {
      return OrderedKey(x);
    }
  }

  // A line of any tensor that memory holds has places of 32 bits, but one of bytes.
  template <typename T>
  void SortLine(const KernelArgs& args, int64_t line, void* room) const {
    using Key = decltype(KeyOf(T()));
    if constexpr (sizeof(Key) == sizeof(uint32_t)) {
      if (x_.size <= int64_t{1} << 32) return SortLineAs<T, NarrowEntry>(args, line, room);
    }
    SortLineAs<T, WideEntry>(args, line, room);
  }

  template <typename T, typename Entry>
  void SortLineAs(const KernelArgs& args, int64_t line, void* room) const {
    const int64_t outer = line / x_.inner, column = line % x_.inner;
    const T* x = static_cast<const T*>(args.inputs[0]) + outer * x_.size * x_.inner + column;
    const int64_t start = outer * y_.size * y_.inner + column;
    T* values = static_cast<T*>(args.outputs[0]) + start;
    int64_t* places = static_cast<int64_t*>(args.outputs[1]) + start;
    auto* entries = static_cast<Entry*>(room);
    for (int64_t k = 0; k < x_.size; ++k) {
      const auto key = KeyOf(x[k * x_.inner]);
      entries[k] = Entry(descending_ ? ~key : key, k);
    }
    // NarrowEntries leave half of the room.
    const Entry* sorted = SortFirst(entries, entries + x_.size, x_.size, y_.size);
    for (int64_t k = 0; k < y_.size; ++k) {
      const int64_t place = sorted[k].place();
      values[k * y_.inner] = x[place * x_.inner];
      places[k * y_.inner] = place;
    }
  }

  AxisSplit x_, y_;
  DType dtype_;
  bool descending_;
  int64_t lines_ = 0, slots_ = 0;
};

}  // namespace

void Register_cpu_sort(KernelRegistry& r) {
  AddNativeCandidate<SortKernel>(r, "lines", "sort", ir::kNumeric, PlainInputs);
}

}  // namespace halftone::kernels
