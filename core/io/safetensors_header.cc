// A JSON object {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...,
// "__metadata__": {"key": "text", ...}}.
#include "halftone/core/io/safetensors_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "halftone/core/align.h"
#include "halftone/core/printable.h"

namespace halftone::io {
namespace {

using Place = SafetensorsHeader::Place;
using Json = nlohmann::json;

// The elements begin at a multiple of this, so that a reader may map them.
constexpr uint64_t kElementsAlignment = 8;
constexpr const char* kMetadata = "__metadata__";

struct TypeName {
  DType dtype;
  const char* name;
};
// In the order in which the library of the format writes tensors.
constexpr TypeName kTypeNames[] = {{DType::kI64, "I64"},        {DType::kF64, "F64"},
                                   {DType::kF32, "F32"},        {DType::kI32, "I32"},
                                   {DType::kBF16, "BF16"},      {DType::kF16, "F16"},
                                   {DType::kF8E4M3, "F8_E4M3"}, {DType::kF8E5M2, "F8_E5M2"},
                                   {DType::kU8, "U8"},          {DType::kBool, "BOOL"}};
static_assert(std::size(kTypeNames) == kNumDTypes);

const TypeName* Find(DType dtype) {
  return std::find_if(std::begin(kTypeNames), std::end(kTypeNames),
                      [&](const TypeName& t) { return t.dtype == dtype; });
}

std::string Quoted(const std::string& text) { return "\"" + Printable(text) + "\""; }

// A value of the header for a message.
std::string Shown(const Json& value) {
  return Printable(value.dump(-1, ' ', false, Json::error_handler_t::replace)).substr(0, 200);
}

uint64_t BytesOf(const Place& place) {
  return static_cast<uint64_t>(place.shape.num_elements()) * SizeOf(place.dtype);
}

std::optional<uint64_t> WholeNumber(const Json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  return value.get<uint64_t>();
}

absl::StatusOr<DType> ParseTypeName(const Json& name) {
  for (const TypeName& t : kTypeNames) {
    if (name == t.name) return t.dtype;
  }
  return InvalidArgument("dtype ", Shown(name),
                         "; expected F64, F32, F16, BF16, F8_E4M3, F8_E5M2, I64, I32, U8 or BOOL");
}

absl::StatusOr<Shape> ShapeOf(const Json& extents) {
  std::vector<int64_t> dims;
  if (!extents.is_array()) return InvalidArgument("shape ", Shown(extents), "; expected a list");
  for (const Json& extent : extents) {
    const auto dim = WholeNumber(extent);
    if (!dim.has_value() || *dim > uint64_t{INT64_MAX}) {
      return InvalidArgument("shape ", Shown(extents), "; expected whole numbers from 0 on");
    }
    dims.push_back(static_cast<int64_t>(*dim));
  }
  return Shape::Make(dims);
}

absl::StatusOr<Place> PlaceOf(const std::string& name, const Json& entry) {
  static const auto* const keys = new std::set<std::string>{"dtype", "shape", "data_offsets"};
  if (!entry.is_object()) return InvalidArgument(Shown(entry), "; expected an object");
  for (const std::string& key : *keys) {
    if (!entry.contains(key)) return InvalidArgument("no ", key);
  }
  for (const auto& [key, value] : entry.items()) {
    if (keys->count(key) == 0) return InvalidArgument("unknown key ", Quoted(key));
  }
  HT_ASSIGN_OR_RETURN(const DType dtype, ParseTypeName(entry["dtype"]));
  HT_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(entry["shape"]));
  const Json& offsets = entry["data_offsets"];
  const bool two = offsets.is_array() && offsets.size() == 2;
  const auto begin = two ? WholeNumber(offsets[0]) : std::nullopt;
  const auto end = two ? WholeNumber(offsets[1]) : std::nullopt;
  if (!begin.has_value() || !end.has_value() || *begin > *end) {
    return InvalidArgument("data_offsets ", Shown(offsets), "; expected [begin, end]");
  }
  Place place{name, dtype, shape, *begin, *end};
  if (place.end - place.begin != BytesOf(place)) {
    return InvalidArgument(Name(dtype), shape, " takes ", BytesOf(place),
                           " bytes; data_offsets give ", place.end - place.begin);
  }
  return place;
}

absl::Status ReadMetadata(const Json& entry, std::map<std::string, std::string>& metadata) {
  if (!entry.is_object()) return InvalidArgument(kMetadata, " is no object");
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) {
      return InvalidArgument(kMetadata, ": ", Quoted(key), " is ", Shown(value),
                             "; expected a string");
    }
    metadata[key] = value.get<std::string>();
  }
  return absl::OkStatus();
}

// Of two equal keys the library would keep the last without a word; what lies deeper than a header
// goes is dropped before it takes memory.
absl::StatusOr<Json> ParseJson(const std::string& text) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  std::string twice;
  bool deep = false;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    constexpr int kDeepest = 3;
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key &&
        !keys.back().insert(value.get_ref<const std::string&>()).second) {
      twice = value.get<std::string>();
    }
    deep = deep || depth > kDeepest;
    return depth <= kDeepest;
  };
  Json header = Json::parse(text, watch, /*allow_exceptions=*/false);
  if (deep || !header.is_object() || text[0] != '{') {
    return InvalidArgument("the header of ", text.size(), " bytes is not the JSON of safetensors");
  }
  if (!twice.empty()) return InvalidArgument(Quoted(twice), " occurs twice in the header");
  return header;
}

}  // namespace

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(const std::string& text) {
  HT_ASSIGN_OR_RETURN(const Json json, ParseJson(text));
  SafetensorsHeader header;
  for (const auto& [name, entry] : json.items()) {
    if (name == kMetadata) {
      HT_RETURN_IF_ERROR(ReadMetadata(entry, header.metadata));
      continue;
    }
    absl::StatusOr<Place> place = PlaceOf(name, entry);
    if (!place.ok()) return Annotate(place.status(), "tensor " + Quoted(name) + ": ");
    header.places.push_back(*std::move(place));
  }
  // Empty ones first where they begin at the same byte.
  std::sort(header.places.begin(), header.places.end(), [](const Place& a, const Place& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  uint64_t end = 0;
  for (const Place& place : header.places) {
    if (place.begin != end) {
      return InvalidArgument("tensor ", Quoted(place.name), " begins at byte ", place.begin,
                             "; expected ", end, ", right behind what is before it");
    }
    end = place.end;
  }
  return header;
}

void PutInOrder(std::vector<Place>& places) {
  std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::tuple(Find(a.dtype), a.name) < std::tuple(Find(b.dtype), b.name);
  });
  uint64_t at = 0;
  for (Place& place : places) {
    place.begin = at;
    place.end = at += BytesOf(place);
  }
}

absl::StatusOr<std::string> FormatSafetensorsHeader(const SafetensorsHeader& header) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) json[kMetadata] = header.metadata;
  for (const Place& place : header.places) {
    if (place.name == kMetadata) {
      return InvalidArgument("a tensor cannot be called ", kMetadata, " in a safetensors file");
    }
    const auto dims = place.shape.dims();
    json[place.name] = {{"dtype", Find(place.dtype)->name},
                        {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
                        {"data_offsets", {place.begin, place.end}}};
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const Json::exception&) {
    return InvalidArgument("a name or a text of the metadata is not UTF-8");
  }
  text.resize(AlignUp(text.size(), kElementsAlignment), ' ');
  if (text.size() > kMaxSafetensorsHeader) {
    return InvalidArgument("the header has ", text.size(), " bytes; expected at most ",
                           kMaxSafetensorsHeader);
  }
  return text;
}

}  // namespace halftone::io
