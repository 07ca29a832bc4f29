// SPDX-License-Identifier: MIT
//
// How far an output may be off on random data, tried from outside: an element just within the
// stated limit must pass, and one just beyond it must fail. The limits are written here anew, from
// the formulas that the spec states: nothing here asks the code that judges.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "common/harness/verify/right_outputs.h"
#include "epilogue_product.h"

namespace gg {
namespace {

constexpr double kSum = 0x1p-19;  // of sum |a*b|: what an fp32 accumulator may lose

struct Sums {  // of products at each element of B's columns, row by row
  std::vector<double> value, size;
};
Sums sums_of(const Buffers& buffers, const Group& group) {
  Sums sums;
  sums.value.resize(size_t(group.m) * size_t(group.n));
  sums.size.resize(sums.value.size());
  reference_rows(buffers.matrices(), group, 0, group.m, sums.value.data(), sums.size.data());
  return sums;
}

// Distance of a code from the middle of what is right, as a share of what it may be: 1
// at the limit.
using Share = std::function<double(size_t element, uint32_t code)>;

// Codes in the order of their values, from the lowest.
int64_t ordered(Format format, uint32_t code) {
  const uint32_t sign = sign_bit(format_info(format)), size = code & (sign - 1);
  return code & sign ? -int64_t(size) : int64_t(size);
}
uint32_t code_at(Format format, int64_t order) {
  return order < 0 ? uint32_t(-order) | sign_bit(format_info(format)) : uint32_t(order);
}

struct Edge {  // the code nearest to a limit, on one side of it
  size_t element = 0;
  uint32_t code = 0;
  double share = 0;
};

// The code that is nearest to its limit, of all elements of an output, within it and beyond.
// `noise`: how far the two may be from the limit and are not tried, for what is right has roundings
// of its own.
class Edges {
 public:
  Edges(Format format, double noise) : format_(format), noise_(noise) { beyond_.share = INFINITY; }

  void look_at(size_t element, double middle, const Share& share) {
    const int64_t from = ordered(format_, encode(format_, middle));
    for (const int side : {-1, 1}) {
      const auto at = [&](int64_t steps) { return share(element, code_at(format_, from + side * steps)); };
      // The last step that is at most so far off, and the one behind it.
      const auto last_within = [&](double limit) {
        int64_t inside = 0, outside = 1;
        while (at(outside) <= limit) outside *= 2;
        while (outside - inside > 1) {
          const int64_t half = (inside + outside) / 2;
          (at(half) <= limit ? inside : outside) = half;
        }
        return inside;
      };
      const int64_t inside = last_within(1 - noise_), outside = last_within(1 + noise_) + 1;
      if (inside > 0 && at(inside) > within_.share)
        within_ = {element, code_at(format_, from + side * inside), at(inside)};
      if (at(outside) < beyond_.share)
        beyond_ = {element, code_at(format_, from + side * outside), at(outside)};
    }
  }
  const Edge& within() const { return within_; }
  const Edge& beyond() const { return beyond_; }

 private:
  Format format_;
  double noise_;
  Edge within_, beyond_;
};

// Puts each edge into the output, which is right but for it.
void expect_limit(Machine& machine, const Buffers& buffers, Tensor output, Format format, const Edges& edges,
                  const std::function<int64_t(size_t)>& place_of, double nearest, const std::string& what) {
  EXPECT_GT(edges.within().share, 1 / nearest) << what << ": no element comes near its limit";
  EXPECT_LT(edges.beyond().share, nearest) << what << ": no element comes near its limit";
  void* const first = buffers.of(output).first();
  for (const bool is_within : {true, false}) {
    const Edge& edge = is_within ? edges.within() : edges.beyond();
    const int64_t at = place_of(edge.element);
    const uint32_t right = load_code(first, format, at);
    store_code(first, format, at, edge.code);
    EXPECT_EQ(right_outputs(machine, buffers, 1), is_within)
        << what << ": " << edge.share << " of the limit, element " << edge.element;
    store_code(first, format, at, right);
  }
}

// ---- products ----

double ulp_at(Format format, double x) {
  const int mantissa = format == Format::f32 ? 23 : format == Format::f16 ? 10 : 7;
  const int least = format == Format::f16 ? -14 : -126;
  return std::ldexp(1.0, std::max(std::ilogb(x), least) - mantissa);
}

class OfProducts : public testing::TestWithParam<Formats> {};

// One ulp of D's type at the sum and 2^-19 of the sum of |a*b|; twice that of two types, which
// go through tf32.
TEST_P(OfProducts, IsWhereItIsSaid) {
  gg::Setup setup;
  setup.request.formats = GetParam();
  setup.request.b_layout = BLayout::nk;
  setup.host_offsets = false;
  const Format d = setup.request.formats.d;
  const double factor = setup.request.formats.a == setup.request.formats.b ? kSum : 2 * kSum;
  const auto machine = host_machine();
  Buffers buffers(*machine, setup, {{33}, {72}, {128}});
  buffers.fill_operands({Fill::Kind::normal, 0, 7, 0});
  const Group& group = buffers.layout().groups[0];
  const Sums sums = sums_of(buffers, group);
  Edges edges(d, 1e-9);
  for (size_t i = 0; i < sums.value.size(); ++i) {
    store_code(buffers.d(), d, group.d.offset + int64_t(i), encode(d, sums.value[i]));
    edges.look_at(i, sums.value[i], [&](size_t at, uint32_t code) {
      const double limit = ulp_at(d, sums.value[at]) + factor * sums.size[at];
      return std::fabs(double(decode(d, code)) - sums.value[at]) / limit;
    });
  }
  EXPECT_TRUE(right_outputs(*machine, buffers, 1));
  expect_limit(
      *machine, buffers, Tensor::d, d, edges, [](size_t i) { return int64_t(i); }, 1.005,
      setup.request.formats.name());
}

std::vector<Formats> formats_of_products() {
  std::vector<Formats> all;
  for (const Format d : {Format::f32, Format::f16, Format::bf16}) {
    for (const Format ab : {Format::f32, Format::f16, Format::bf16}) all.push_back({ab, ab, d});
    all.push_back({Format::bf16, Format::f16, d});
    for (const BlockFormat scaled : {BlockFormat::mxfp8, BlockFormat::mxfp8_e5m2, BlockFormat::mxfp4,
                                     BlockFormat::nvfp4, BlockFormat::fp4_ue8m0_16}) {
      const Format element = block_scaling(scaled).element;
      all.push_back({element, element, d, scaled});
    }
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Limit, OfProducts, testing::ValuesIn(formats_of_products()), [](const auto& info) {
  return format("%d_%s", int(info.index), format_info(info.param.d).name);
});

// ---- epilogues ----

struct Interval {  // of the values that are right before they are rounded to an output's type
  double lo = 0, hi = 0;

  double middle() const { return (lo + hi) / 2; }
};
Interval hull(std::initializer_list<double> values) { return {std::min(values), std::max(values)}; }
Interval operator*(const Interval& x, const Interval& y) {
  return hull({x.lo * y.lo, x.lo * y.hi, x.hi * y.lo, x.hi * y.hi});
}
Interval operator*(const Interval& x, double y) { return hull({x.lo * y, x.hi * y}); }
Interval operator+(const Interval& x, double y) { return {x.lo + y, x.hi + y}; }

// A code is right where something in the interval rounds to it: its limit is half way to the next.
double share_of(Format format, const Interval& right, uint32_t code) {
  const double half = (right.hi - right.lo) / 2, middle = right.middle();
  const int64_t order = ordered(format, code);
  const double value = decode(format, code);
  const uint32_t inner = code_at(format, value > middle ? order - 1 : order + 1);
  return std::fabs((value + double(decode(format, inner))) / 2 - middle) / half;
}

struct Kind {
  const char* name;
  Formats formats;
  Epilogue epilogue;
  double nearest = 1.6;  // how near to its limit some element must come
};

// Rows of one group, their sums and what an epilogue makes of them, all in double: roundings to
// f32 are noise.
class Expected {
 public:
  explicit Expected(const Buffers& buffers)
      : buffers_(buffers),
        group_(buffers.layout().groups[0]),
        sums_(sums_of(buffers, group_)),
        lowest_a_(
            lowest_bits(buffers.a(), buffers.setup().request.formats.a, group_.a, buffers.sfa(), group_.sfa)),
        lowest_b_(lowest_bits(buffers.b(), buffers.setup().request.formats.b, group_.b, buffers.sfb(),
                              group_.sfb)) {}

  int rows() const { return group_.m; }
  int columns() const { return group_.n; }
  // No sum is off where f32 holds all its terms: multiples of one power of two, and few enough.
  bool is_exact(int row, int col) const {
    const double size = sums_.size[size_t(row) * size_t(group_.n) + size_t(col)];
    return size < std::ldexp(1.0, 24 + lowest_a_[size_t(row)] + lowest_b_[size_t(col)]);
  }
  // v, or c.
  Interval value(int row, int col) const {
    const EpilogueOperands& operands = buffers_.epilogue_operands();
    const Epilogue& e = buffers_.setup().request.epilogue;
    const size_t at = size_t(row) * size_t(group_.n) + size_t(col);
    const double off = is_exact(row, col) ? 0 : kSum * sums_.size[at], alpha = operands.alpha[0],
                 prob = operands.prob[size_t(row)];
    const Interval product = Interval{sums_.value[at] - off, sums_.value[at] + off} * alpha;
    const double bias =
        e.bias ? decode(e.bias_format, load_code(operands.bias.data(), e.bias_format, col)) : 0;
    if (e.op != Operator::quant) return product + bias;
    return e.bias ? product + prob * bias : product * prob;
  }
  Interval activated(int row, int col) const {
    const int gate_col = col / 32 * 64 + col % 32;
    Interval gate = value(row, gate_col), up = value(row, gate_col + 32), t = gate;
    if (buffers_.setup().request.epilogue.activation == Activation::geglu) {
      const auto clamp = [](const Interval& x, double least) {
        return Interval{std::clamp(x.lo, least, 7.0), std::clamp(x.hi, least, 7.0)};
      };
      gate = clamp(gate, -INFINITY);
      up = clamp(up, -7) + 1;
      t = gate * double(1.702f);
    }
    const Interval sigma = {of_sigma(t.lo, -1), of_sigma(t.hi, 1)};
    return gate * sigma * up * double(buffers_.epilogue_operands().prob[size_t(row)]);
  }
  // X is rounded to bf16, and each sum of 16 is off by 2^-20 of its terms. Nothing where noise
  // decides to which number an X is rounded.
  Interval transformed(int row, int col) const {
    Interval all;
    double size = 0;
    for (int i = 0; i < 16; ++i) {
      const Interval x = activated(row, col / 16 * 16 + i);
      const double noise = 0x1p-20 * std::fabs(x.middle());
      if (to_bf16(x.lo - noise) != to_bf16(x.lo + noise) || to_bf16(x.hi - noise) != to_bf16(x.hi + noise))
        return {};
      const double lo = to_bf16(x.lo), hi = to_bf16(x.hi);
      const std::vector<uint16_t>& w = buffers_.epilogue_operands().hadamard;
      const Interval term = Interval{lo, hi} * double(decode(Format::bf16, w[size_t(col % 16 * 16 + i)]));
      all.lo += term.lo;
      all.hi += term.hi;
      size += std::max(std::fabs(term.lo), std::fabs(term.hi));
    }
    return {all.lo - size * 0x1p-20, all.hi + size * 0x1p-20};
  }

 private:
  // The lowest bit of each row's elements, with their scales.
  std::vector<int> lowest_bits(const void* tensor, Format format, const Region& rows, const uint8_t* scales,
                               const ScaleRegion& scale_of) const {
    const Formats& formats = buffers_.setup().request.formats;
    std::vector<int> all;
    for (int row = 0; row < rows.rows; ++row) {
      all.push_back(1 << 20);
      for (int k = 0; k < rows.cols; ++k) {
        double value = decode(format, load_code(tensor, format, rows.offset + row * rows.ld + k));
        if (scales)
          value *= decode(formats.scaling().scale, scales[scale_of.at(row, k / group_.scale_block)]);
        if (value == 0) continue;
        int bit = 0;
        for (double x = std::frexp(value, &bit); x != std::floor(x); x *= 2) --bit;
        all.back() = std::min(all.back(), bit);
      }
    }
    return all;
  }
  static double to_bf16(double x) { return decode(Format::bf16, encode(Format::bf16, x)); }
  static double of_sigma(double t, int sign) {
    const double s = 1 / (1 + std::exp(-t));
    return s * (1 + sign * ((1 - s) * (std::fabs(t) * 0x1p-22 + 0x1p-21) + 0x1p-21));
  }

  const Buffers& buffers_;
  const Group& group_;
  const Sums sums_;
  const std::vector<int> lowest_a_, lowest_b_;
};

class OfEpilogues : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    const Kind& kind = GetParam();
    gg::Setup setup;
    setup.request.formats = kind.formats;
    setup.request.b_layout = BLayout::nk;
    setup.host_offsets = false;
    setup.request.epilogue = kind.epilogue;
    buffers_ = std::make_unique<Buffers>(*machine_, setup, Shape{{96}, {128}, {64}});
    buffers_->fill_operands({Fill::Kind::normal, 0, 5, 0});
    buffers_->poison(0xFF);
    planted::Product()(buffers_->problem(), nullptr);
    ASSERT_TRUE(right_outputs(*machine_, *buffers_, 1));
    expected_ = std::make_unique<Expected>(*buffers_);
  }

  void expect_limit_of(Tensor output, Format format, int columns,
                       const std::function<Interval(int row, int col)>& right) {
    Edges edges(format, 0.1);
    for (int row = 0; row < expected_->rows(); ++row) {
      for (int col = 0; col < columns; ++col) {
        const Interval all = right(row, col);
        // Elsewhere roundings to f32 are no noise, but wider than the interval.
        if (std::fabs(all.middle()) < 1e-3 || all.hi - all.lo < 0x1p-17 * std::fabs(all.middle())) continue;
        edges.look_at(size_t(row * columns + col), all.middle(),
                      [&](size_t, uint32_t code) { return share_of(format, all, code); });
      }
    }
    expect_limit(
        *machine_, *buffers_, output, format, edges, [](size_t i) { return int64_t(i); }, GetParam().nearest,
        std::string(GetParam().name) + " " + tensor_name(output));
  }

  // amax is f32, and that of the element that is largest.
  void expect_limit_of_amax(int columns, const std::function<Interval(int row, int col)>& right) {
    Interval largest;
    for (int row = 0; row < expected_->rows(); ++row) {
      for (int col = 0; col < columns; ++col) {
        const Interval x = right(row, col);
        largest.lo = std::max(largest.lo, std::min(std::fabs(x.lo), std::fabs(x.hi)));
        largest.hi = std::max(largest.hi, std::max(std::fabs(x.lo), std::fabs(x.hi)));
      }
    }
    Edges edges(Format::f32, 0.1);
    edges.look_at(0, largest.middle(),
                  [&](size_t, uint32_t code) { return share_of(Format::f32, largest, code); });
    expect_limit(
        *machine_, *buffers_, Tensor::amax, Format::f32, edges, [](size_t) { return 0; }, 1.6,
        std::string(GetParam().name) + " amax");
  }

  const std::unique_ptr<Machine> machine_ = host_machine();
  std::unique_ptr<Buffers> buffers_;
  std::unique_ptr<Expected> expected_;
};

TEST_P(OfEpilogues, IsWhereItIsSaid) {
  const Epilogue& e = GetParam().epilogue;
  const Formats& formats = GetParam().formats;
  const auto c = [&](int row, int col) { return expected_->value(row, col); };
  const auto d = [&](int row, int col) {
    return e.op == Operator::quant ? expected_->value(row, col)
           : e.op == Operator::glu ? expected_->activated(row, col)
                                   : expected_->transformed(row, col);
  };
  const int columns = e.columns_of_d(expected_->columns());
  if (e.has_c()) expect_limit_of(Tensor::c, formats.c, expected_->columns(), c);
  expect_limit_of(Tensor::d, formats.d, columns, d);
  const bool bias_is_largest = e.op == Operator::quant && e.bias;  // a known number
  if (e.amax && !bias_is_largest) expect_limit_of_amax(columns, d);
}

Epilogue with(Operator op, bool bias, Activation activation = Activation::swiglu) {
  return {.op = op, .amax = true, .bias = bias, .activation = activation};
}
std::vector<Kind> kinds() {
  constexpr Format f32 = Format::f32, f16 = Format::f16, bf16 = Format::bf16;
  const Formats mxfp8{Format::e4m3, Format::e4m3, bf16, BlockFormat::mxfp8};
  std::vector<Kind> all;
  for (const bool bias : {false, true}) {
    all.push_back({"quant_bf16", {bf16, bf16, bf16}, with(Operator::quant, bias)});
    all.push_back({"quant_f16", {bf16, bf16, f16}, with(Operator::quant, bias)});
    all.push_back({"quant_f32", {bf16, bf16, f32}, with(Operator::quant, bias)});
    const Activation act = bias ? Activation::geglu : Activation::swiglu;
    all.push_back({"glu_bf16", {bf16, bf16, bf16, BlockFormat::none, f16}, with(Operator::glu, bias, act)});
    all.push_back({"glu_f16", {bf16, bf16, f16, BlockFormat::none, bf16}, with(Operator::glu, bias, act)});
    all.push_back({"hadamard_bf16", {bf16, bf16, bf16}, with(Operator::glu_hadamard, bias, act)});
    all.push_back({"hadamard_f16", {bf16, bf16, f16}, with(Operator::glu_hadamard, bias, act)});
  }
  all.push_back({"quant_mxfp8", mxfp8, {.op = Operator::quant}});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Limit, OfEpilogues, testing::ValuesIn(kinds()),
                         [](const auto& info) { return format("%d_%s", int(info.index), info.param.name); });

}  // namespace
}  // namespace gg
