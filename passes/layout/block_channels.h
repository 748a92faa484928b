// block-channels: activations in blocks of 16 channels between convolutions.
//
// Before:      %x_nhwc = relayout(%x) {to="nhwc"} : f32[8,3,28,28]{nhwc}
//              %c = conv2d(%x_nhwc, %w) : f32[8,32,28,28]{nhwc}
//              %r = relu(%c) : f32[8,32,28,28]{nhwc}
//              %d = conv2d(%r, %v) : f32[8,64,28,28]{nhwc}
//              %d_plain = relayout(%d) {to="plain"} : f32[8,64,28,28]
// After:       %c = conv2d(%x, %w) : f32[8,32,28,28]{nchw16c}
//              %r = relu(%c) : f32[8,32,28,28]{nchw16c}
//              %d = conv2d(%r, %v) : f32[8,64,28,28]{nchw16c}
//              %d_plain = relayout(%d) {to="plain"} : f32[8,64,28,28]
// Requires:    Target::PrefersChannelBlocks; layouts assigned, none of them blocks (else nothing happens).
// Guarantees:  only channels-last values of ops whose record has channel_blocks, and of whole blocks of
//              channels, change their layout; of a convolution's images one may be another: x of at most
//              three channels is plain, and what fills no blocks stays channels-last; chosen so that what
//              convolutions gain is more than what relayouts cost. Logical shapes stay, and values but for
//              the order of a convolution's sums.
// Never:       changes variables, constants, graph inputs, graph outputs, or grouped convolutions.
// Order:       after assign-layouts and merge-copies, which knows no blocks; before fuse.
// Stats:       "in_blocks" (values), "relayouts" (made).
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeBlockChannels();

}  // namespace halftone::passes
