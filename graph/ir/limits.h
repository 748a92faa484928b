// Bounds on what a graph from outside may ask for. They are far above any real graph and keep a
// hostile file from taking memory or time that its own size does not pay for.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halftone::ir {

inline constexpr size_t kMaxNameBytes = 256;
inline constexpr size_t kMaxStringBytes = size_t{1} << 20;
inline constexpr size_t kMaxNodes = size_t{1} << 20;
inline constexpr size_t kMaxNodeInputs = size_t{1} << 16;
inline constexpr size_t kMaxNodeAttributes = 256;
inline constexpr size_t kMaxListItems = size_t{1} << 20;
// A graph file, text or proto: what protobuf can address.
inline constexpr size_t kMaxFileBytes = (size_t{1} << 31) - 1;

// Constants with more elements live in a file beside the text.
inline constexpr int64_t kMaxInlineElements = 1024;
// Bytes that all splat constants of one text may expand to.
inline constexpr int64_t kMaxSplatBytes = int64_t{1} << 28;

}  // namespace halftone::ir
