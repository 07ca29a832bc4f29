// SPDX-License-Identifier: MIT
//
// Kernels that change tensor maps in memory, and hand the change on. PTX ISA:
// "Data Movement and Conversion Instructions: tensormap.replace,
// prefetch.tensormap", "tensormap.cp_fenceproxy", "fence.proxy.tensormap".

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/state/unwritten.h"
#include "common/emu/core/units/bulk_copy.h"
#include "common/emu/core/units/tensor_map_use.h"

namespace gg::emu {

namespace {

constexpr int kSourceAlignment = 16;
constexpr int kBytes = int(kTensorMapBytes);

// ---- tensormap.replace ----

enum class Field : uint8_t {
  global_address,
  rank,
  box_dim,
  global_dim,
  global_stride,
  element_stride,
  elemtype,
  interleave_layout,
  swizzle_mode,
  swizzle_atomicity,
  fill_mode
};
constexpr const char* kFieldNames[] = {
    "global_address", "rank",     "box_dim",           "global_dim",   "global_stride",
    "element_stride", "elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity",
    "fill_mode"};

void set_field(TensorMap* map, Field field, int dimension, uint64_t value) {
  switch (field) {
    case Field::global_address:
      map->address = value;
      return;
    case Field::rank:
      map->rank = int(value) + 1;
      return;
    case Field::box_dim:
      map->box[dimension] = int(value);
      return;
    case Field::global_dim:
      map->dims[dimension] = value ? value : 1ull << 32;
      return;  // as hardware counts
    case Field::global_stride:
      map->strides[dimension + 1] = value;
      return;
    case Field::element_stride:
      map->element_strides[dimension] = int(value);
      return;
    case Field::elemtype:
      map->type = MapType(value);
      return;
    case Field::interleave_layout:
      map->interleave = int(value);
      return;
    case Field::swizzle_mode:
      map->swizzle = int(value);
      return;
    case Field::swizzle_atomicity:
      map->atomicity = int(value);
      return;
    case Field::fill_mode:
      map->nan_fill = value != 0;
      return;
  }
}

// Faults unless the field can hold the value, counted from its least value.
void check_value(Warp& w, const Instr& in, int lane, Field field, uint64_t value) {
  uint64_t least = 0, most = UINT64_MAX, unit = 1;
  if (field == Field::rank) most = kTensorMapRank - 1;
  if (field == Field::box_dim) least = 1, most = 256;
  if (field == Field::element_stride) least = 1, most = 8;
  if (field == Field::global_stride) most = (1ull << 40) - 16, unit = 16;
  if (value >= least && value <= most && value % unit == 0) return;
  raise_final(FaultKind::tensor_map, w, in, lane,
              std::string(".") + kFieldNames[int(field)] + " cannot be " + std::to_string(value),
              field == Field::rank ? "the operand is the rank less one, 0 to 4"
                                   : "the field holds " + std::to_string(least) + " to " +
                                         std::to_string(most) + ", in multiples of " + std::to_string(unit));
}

// variant: the field; variant2: the dimension; bytes: of the value in s[0].
Next replace(Warp& w, const Instr& in, Mask m) {
  uint64_t address[kLanes];
  addresses(w, in, address);
  for (Lanes l(m); l; ++l) {
    const Place place = locate(w, in, *l, in.space, address[*l], kBytes, kTensorMapAlignment);
    if (place.block) {
      check_shared_read(w, in, *l, own_block(w, in, *l, place), kBytes);
      check_shared_write(w, in, *l, place, kBytes);
    }
    check_global_read(w, in, *l, place.buffer, address[*l], kBytes);
    TensorMap map = decode_tensor_map(place.bytes);
    if (map.unknown) {
      raise_final(FaultKind::tensor_map, w, in, *l,
                  "the 128 bytes at " + hex(address[*l]) + " are no tensor map",
                  "fill them with zeros or with a whole map first");
    }
    const Field field = Field(in.variant);
    const uint64_t value = in.bytes == 8 ? w.at<uint64_t>(in.s[0])[*l] : w.at<uint32_t>(in.s[0])[*l];
    check_value(w, in, *l, field, value);
    set_field(&map, field, in.variant2, value);
    if (!place.block) tensor_map_changed(w, in, *l, address[*l], false);
    encode_tensor_map(map, place.bytes);
  }
  return Next::go_on;
}

struct CopyForm {
  AddressOperand to, from;
};

// The whole warp makes one copy: all lanes give the same addresses.
Next copy_and_release(Warp& w, const Instr& in, Mask m) {
  const CopyForm& f = *static_cast<const CopyForm*>(in.extra);
  const int lane = __builtin_ctz(m);
  const uint64_t to_address = f.to.of(w, lane);
  for (Lanes l(m); l; ++l) {
    if (f.to.of(w, *l) != to_address || f.from.of(w, *l) != f.from.of(w, lane)) {
      raise_final(FaultKind::diverged, w, in, *l, "lanes give different addresses",
                  "one copy by the whole warp: all lanes give the same operands");
    }
  }
  const Place from = locate_operand(w, in, lane, f.from, kBytes, kSourceAlignment);
  check_shared_read(w, in, lane, from, kBytes);
  const Place to = locate(w, in, lane, Space::global, to_address, kBytes, kTensorMapAlignment);
  tensor_map_changed(w, in, lane, to_address, true);
  will_write_global(w, to.buffer, to_address, kTensorMapBytes);
  std::memcpy(to.bytes, from.bytes, kTensorMapBytes);
  return Next::go_on;
}

// fence.proxy.tensormap::generic.release: all changes so far (variant 0); .acquire: the map at
// the address, for the lane's block (variant 1).
Next fence(Warp& w, const Instr& in, Mask m) {
  if (in.variant == 0) {
    release_tensor_maps(w);
    return Next::go_on;
  }
  uint64_t address[kLanes];
  addresses(w, in, address);
  for (Lanes l(m); l; ++l) {
    if (address[*l] == 0) continue;  // no map, nothing to acquire: an H200 takes it so
    tensor_map_bytes(w, in, *l, address[*l]);
    acquire_tensor_map(w, address[*l]);
  }
  return Next::go_on;
}

Next prefetch(Warp& w, const Instr& in, Mask m) {
  uint64_t address[kLanes];
  addresses(w, in, address);
  for (Lanes l(m); l; ++l) tensor_map_bytes(w, in, *l, address[*l]);
  return Next::go_on;
}

// ---- decoding ----

void decode_replace(Decoder& d) {
  if (!d.take("tile")) throw Unsupported{"a mode other than .tile"};
  const int field =
      d.take_one({"global_address", "rank", "box_dim", "global_dim", "global_stride", "element_stride",
                  "elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity", "fill_mode"});
  if (field < 0) throw Unsupported{"this field of a tensor map"};
  const int space = d.take_one({"global", "shared::cta"});
  const bool wide = field == int(Field::global_address) || field == int(Field::global_stride);
  if (!d.take("b1024") || !d.take(wide ? "b64" : "b32")) throw Unsupported{"this type"};
  d.done();
  d.instr.space = space < 0 ? Space::generic : space == 0 ? Space::global : Space::shared;
  take_address(d, d.operand(0));
  const bool indexed = field >= int(Field::box_dim) && field <= int(Field::element_stride);
  size_t next = 1;
  if (indexed) {
    const int64_t dimension = d.immediate(next++);
    if (dimension < 0 || dimension >= kTensorMapRank - (field == int(Field::global_stride)))
      throw Unsupported{"dimension " + std::to_string(dimension)};
    d.instr.variant2 = uint8_t(dimension);
  }
  if (field >= int(Field::elemtype)) {
    const int64_t last_type = targets_sm100(*d.code().module) ? 15 : 12;
    const bool atomicity = field == int(Field::swizzle_atomicity);
    if (atomicity && !targets_sm100(*d.code().module)) throw Unsupported{"this field before sm_100a"};
    const int64_t most[] = {last_type, 2, 3, 3, 1};
    const int64_t value = d.immediate(next);
    const bool flips = atomicity && value == 2;  // 8 bytes of every other row change places
    if (value < 0 || value > most[field - int(Field::elemtype)] || flips)
      throw Unsupported{"value " + std::to_string(value) + " of this field"};
  }
  d.instr.s[0] = d.source(next++, type_info(wide ? "b64" : "b32"));
  if (d.operands() != next) throw Unsupported{"this number of operands"};
  d.instr.bytes = wide ? 8 : 4;
  d.instr.variant = uint8_t(field);
  d.instr.run = replace;
}

void decode_copy_and_release(Decoder& d) {
  if (!d.take("global") || !d.take("shared::cta") || !d.take("tensormap::generic") || !d.take("release") ||
      d.take_one({"cta", "cluster", "gpu", "sys"}) < 0 || !d.take("sync") || !d.take("aligned")) {
    throw Unsupported{"this form of tensormap.cp_fenceproxy"};
  }
  d.done();
  if (d.operands() != 3 || d.immediate(2) != kBytes) throw Unsupported{"a size other than 128"};
  d.extra(CopyForm{take_address_operand(d, d.operand(0), Space::global),
                   take_address_operand(d, d.operand(1), Space::shared)});
  d.instr.converged = true;
  d.instr.run = copy_and_release;
}

void decode_tensormap(Decoder& d) {
  if (d.take("replace")) return decode_replace(d);
  if (d.take("cp_fenceproxy")) return decode_copy_and_release(d);
  throw Unsupported{"this tensormap instruction"};
}

void decode_fence(Decoder& d) {
  if (!d.take("proxy") || !d.take("tensormap::generic")) throw Unsupported{"this fence"};
  const int kind = d.take_one({"release", "acquire"});
  if (kind < 0 || d.take_one({"cta", "cluster", "gpu", "sys"}) < 0)
    throw Unsupported{"this fence.proxy.tensormap"};
  d.done();
  d.instr.variant = uint8_t(kind);
  d.instr.space = Space::generic;
  if (kind == 1) {
    take_address(d, d.operand(0));
    if (d.immediate(1) != kBytes) throw Unsupported{"a size other than 128"};
  }
  if (d.operands() != (kind == 1 ? 2 : 0)) throw Unsupported{"this number of operands"};
  d.instr.run = fence;
}

void decode_prefetch(Decoder& d) {
  d.take_one({"param", "const"});  // addresses there are generic ones here
  if (!d.take("tensormap")) throw Unsupported{"this prefetch"};
  d.done();
  d.instr.space = Space::generic;
  take_address(d, d.operand(0));
  if (d.operands() != 1) throw Unsupported{"this number of operands"};
  d.instr.run = prefetch;
}

}  // namespace

std::vector<Form> tensormap_forms() {
  return {{"tensormap", decode_tensormap, Family::bulk},
          {"fence", decode_fence, Family::fence},
          {"prefetch", decode_prefetch, Family::ldst}};
}

}  // namespace gg::emu
