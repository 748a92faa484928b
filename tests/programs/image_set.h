// Small data sets for the programs that train.
#pragma once

#include <cstdint>
#include <string>

namespace halftone::testing {

// Two IDX sets in `folder`, "train" and "t10k", of `images` images each: random pixels and labels,
// the same for equal seeds.
void WriteImageSet(const std::string& folder, int images, uint64_t seed = 1);

// The same where the class of an image is which of ten pairs of rows is bright, and the others are
// dark: what a network can learn.
void WriteStripedImageSet(const std::string& folder, int images, uint64_t seed = 1);

// A number of the head of an IDX file.
std::string BigEndian(uint32_t x);

}  // namespace halftone::testing
