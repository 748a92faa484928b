// Pieces of the text form, shared by the printer and by messages.
#pragma once

#include <string>

#include "halftone/graph/ir/attribute.h"

namespace halftone::ir {

// In double quotes, with \" \\ \n \t \r and \xHH for other control bytes. Bytes from 0x80 on
// (UTF-8) stay as they are.
std::string Quote(const std::string& text);

// "dense<f32[2]>(1, 2.5)"; where all elements have the same bits and `splat` allows it,
// "splat<f32[8,16]>(0)".
std::string FormatTensor(const Tensor& tensor, bool splat);
// Whether FormatTensor would use the splat form.
bool IsSplat(const Tensor& tensor);

// As the text form writes it.
std::string FormatAttr(const AttrValue& value);
// The same, cut short: for messages.
std::string FormatAttrBriefly(const AttrValue& value);

}  // namespace halftone::ir
