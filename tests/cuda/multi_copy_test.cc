// Copies of many segments: sizes, alignments, several launches, the gate.
#include "halftone/kernels/cuda/runtime/multi_copy.h"

#include <gtest/gtest.h>

#include "halftone/tests/cuda/device_memory.h"

namespace halftone::testing {
namespace {

using Bytes = std::vector<unsigned char>;

Bytes Pattern(size_t size, size_t seed) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<unsigned char>((i * 31 + i / 256 + seed * 17) % 251);
  }
  return bytes;
}

struct Piece {
  size_t bytes;
  size_t to_offset = 0, from_offset = 0;  // of the segment in an allocation of its own
};

// Copies all pieces and compares every byte of the destinations, those beside the segments
// included.
void CheckCopies(const std::vector<Piece>& pieces, const kernels::DeviceRunState* gate,
                 bool happens) {
  std::vector<DeviceMemory> to, from;
  std::vector<cuda::CopySegment> segments;
  std::vector<Bytes> want;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& p = pieces[i];
    const Bytes source = Pattern(p.bytes + p.from_offset, i);
    want.emplace_back(p.bytes + p.to_offset + 5, 0xEE);
    from.emplace_back(source.data(), source.size());
    to.emplace_back(want.back().data(), want.back().size());
    segments.push_back({static_cast<char*>(to.back().data()) + p.to_offset,
                        static_cast<char*>(from.back().data()) + p.from_offset, p.bytes});
    if (happens) {
      std::copy(source.begin() + static_cast<ptrdiff_t>(p.from_offset), source.end(),
                want.back().begin() + static_cast<ptrdiff_t>(p.to_offset));
    }
  }
  ASSERT_EQ(cuda::LaunchMultiCopy(segments.data(), segments.size(), gate, nullptr), cudaSuccess);
  for (size_t i = 0; i < pieces.size(); ++i) {
    Bytes got(want[i].size());
    ASSERT_EQ(to[i].Read(got.data()), cudaSuccess);
    EXPECT_EQ(got, want[i]) << "segment " << i << " of " << pieces[i].bytes << " bytes";
  }
}

TEST(MultiCopyTest, CopiesSegmentsOfAnySize) {
  CheckCopies({{1}, {15}, {16}, {17}, {0}, {4096}, {16383}, {16384}, {16385}, {50001}, {0}},
              nullptr, true);
}

TEST(MultiCopyTest, CopiesAtAnyAlignment) {
  CheckCopies({{100, 1, 1}, {100, 4, 0}, {20000, 0, 3}, {20000, 16, 32}, {33, 8, 8}}, nullptr,
              true);
}

TEST(MultiCopyTest, CopiesMoreSegmentsThanOneLaunchTakes) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < 300; ++i) pieces.push_back({i % 70});
  CheckCopies(pieces, nullptr, true);
}

TEST(MultiCopyTest, NothingToCopyIsNoError) {
  CheckCopies({}, nullptr, true);
  CheckCopies({{0}, {0}}, nullptr, true);
}

TEST(MultiCopyTest, AFaultClosesTheGate) {
  kernels::DeviceRunState state;
  DeviceMemory memory(&state, sizeof(state));
  const auto* gate = static_cast<const kernels::DeviceRunState*>(memory.data());
  CheckCopies({{40}, {20000}}, gate, true);
  state.fault_id = 3;
  memory.Write(&state);
  CheckCopies({{40}, {20000}}, gate, false);
}

}  // namespace
}  // namespace halftone::testing
