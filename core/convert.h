// Whole arrays of any element type: conversion, and one value throughout.
#pragma once

#include <cstdint>

#include "halftone/core/dtype.h"

namespace halftone {

// Converts `count` elements, each with one rounding, by the rules of StoreDouble (float sources)
// and StoreInt (integer and bool sources). The arrays must not overlap, except that `to` may be
// `from` when both types are the same.
void ConvertElements(const void* from, DType from_dtype, void* to, DType to_dtype, int64_t count);

// Stores `value` in `count` elements, with one rounding.
void FillElements(double value, void* to, DType dtype, int64_t count);

}  // namespace halftone
