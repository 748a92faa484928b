#include "halftone/graph/ir/op_catalogue.h"

#include "halftone/graph/ir/text_format.h"

namespace halftone::ir {
namespace {

std::string Ports(const std::vector<int>& ports) {
  std::string text;
  for (int port : ports) text += (text.empty() ? "" : ", ") + std::to_string(port);
  return text;
}

void AddInputs(const OpRecord& op, std::string& text) {
  if (op.inputs.empty()) return;
  text += "\n| input | dtypes | |\n| --- | --- | --- |\n";
  for (const InputSpec& input : op.inputs) {
    text += "| `" + input.name + (input.variadic ? "...`" : "`") +
            (input.optional ? " (optional)" : "") + " | " + input.dtypes.ToString() + " | " +
            input.doc + " |\n";
  }
}

void AddOutputs(const OpRecord& op, std::string& text) {
  if (op.outputs.empty()) return;
  text += "\n| output | |\n| --- | --- |\n";
  for (const OutputSpec& output : op.outputs) {
    text += "| `" + output.name + "` | " + output.doc + " |\n";
  }
}

void AddAttrs(const OpRecord& op, std::string& text) {
  if (op.attrs.empty()) return;
  text += "\n| attribute | type | default | |\n| --- | --- | --- | --- |\n";
  for (const AttrSpec& attr : op.attrs) {
    text += "| `" + attr.name + "` | " + Name(attr.type) + " | " +
            (attr.default_value ? "`" + FormatAttrBriefly(*attr.default_value) + "`"
                                : std::string("required")) +
            " | " + attr.doc + " |\n";
  }
}

constexpr char kHeader[] =
    R"(# Operators

What a graph can be made of: every operator with its formula, ports, attributes, how mixed precision treats it and where
the formula is from. The names are those of printed graphs (`HALFTONE_DUMP`, `halftone_dump`); most have a function of
the same name in `graph/nn/functional.h` and in Python's `nn`. Written by `halftone_opt --operators` from the records in
`graph/ops`; a test keeps both equal.

AMP says whether mixed precision computes a node in 16 bit: `allow` always, `infer` where its neighbours do, `clear`
in whatever its operands are in, `deny` never.

| operator | AMP in f16 | in bf16 | gradient |
| --- | --- | --- | --- |
)";

const char* GradientOf(const OpRecord& op) {
  if (op.gradient) return "yes";
  return op.decompose ? "through the decomposition" : "none";
}

}  // namespace

std::string Catalogue(const OpRegistry& registry) {
  std::string text = kHeader, sections;
  for (const OpRecord* op : registry.All()) {
    text += Concat("| [", op->name, "](#", op->name, ") | ", Name(op->amp.f16), " | ",
                   Name(op->amp.bf16), " | ", GradientOf(*op), " |\n");
    sections += "\n" + op->ToCatalogue();
  }
  return text + sections;
}

std::string OpRecord::ToCatalogue() const {
  std::string text = "### " + name + "\n\n" + doc + "\n";
  AddInputs(*this, text);
  AddOutputs(*this, text);
  AddAttrs(*this, text);

  text += std::string("\n* AMP: f16 ") + Name(amp.f16) + ", bf16 " + Name(amp.bf16) + ": " +
          amp.reason + ".";
  if (!amp.keep_f32_inputs.empty()) text += " Inputs in f32: " + Ports(amp.keep_f32_inputs) + ".";
  if (!amp.keep_f32_outputs.empty()) {
    text += " Outputs in f32: " + Ports(amp.keep_f32_outputs) + ".";
  }
  if (!amp.widens_inputs.empty()) text += " Widened as read: " + Ports(amp.widens_inputs) + ".";
  if (amp.accumulates_in_f32) text += " Accumulates in f32.";
  text += std::string("\n* Gradient: ") + GradientOf(*this) +
          (no_gradient.empty() ? "" : ": " + no_gradient) + "\n";
  if (is_marker) text += "* A marker: removed by the pass that lowers it.\n";
  if (is_random) text += "* Random: never merged or folded.\n";
  if (communicates)
    text += "* Exchanges data with other processes: never merged, folded or run again.\n";
  if (can_fault()) text += "* May fault at run time: an index out of range.\n";
  if (!source.empty()) text += "* Source: " + source + "\n";
  return text;
}

}  // namespace halftone::ir
