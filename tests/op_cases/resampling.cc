// upsample2d upsample2d_grad.
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {

void AddCases_resampling(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& x, int64_t height, int64_t width,
                       std::vector<double> scales = {}) {
    for (const std::string form : {"nearest", "bilinear", "aligned"}) {
      ir::Attributes attrs = {{"size", std::vector<int64_t>{height, width}},
                              {"mode", std::string(form == "nearest" ? form : "bilinear")},
                              {"align_corners", form == "aligned"},
                              {"scales", scales}};
      cases.push_back(Case("upsample2d", variant + "_" + form, {Reals(x)}, attrs));
      attrs.Set("shape", std::vector<int64_t>(x.dims().begin(), x.dims().end()));
      cases.push_back(Case("upsample2d_grad", variant + "_" + form,
                           {Reals({x[0], x[1], height, width})}, attrs));
    }
  };
  add("twice", {2, 3, 3, 4}, 6, 8);
  add("same", {1, 2, 3, 5}, 3, 5);
  add("larger", {1, 1, 3, 2}, 7, 5);
  add("smaller", {1, 2, 9, 7}, 4, 3);
  add("mixed", {1, 2, 5, 3}, 2, 11);
  add("from_one", {2, 1, 1, 1}, 3, 4);
  add("to_one", {1, 2, 5, 4}, 1, 1);
  add("scaled", {1, 2, 4, 5}, 10, 8, {2.5, 1.7});
  add("scaled_down", {1, 1, 9, 8}, 3, 5, {0.4, 0.7});
  add("beyond", {1, 1, 3, 4}, 9, 7, {0.5, 3.0});
  add("no_images", {0, 2, 3, 4}, 6, 8);
}

}  // namespace halftone::testing
