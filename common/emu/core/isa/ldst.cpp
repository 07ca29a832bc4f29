// SPDX-License-Identifier: MIT
//
// Loads and stores of every space and width, and prefetches. PTX ISA: "Data Movement and Conversion
// Instructions: ld, ld.global.nc, ldu, st, prefetch". Every access is checked (access.h): inside
// one live allocation, aligned to its size, and in shared memory written before it is read,
// untouched by copies under way, and ordered with other warps' accesses.

#include <algorithm>

#include "common/emu/core/decode/overtaken.h"
#include "common/emu/core/isa/forms.h"
#include "common/emu/core/state/access.h"
#include "common/emu/core/state/undefined.h"

namespace gg::emu {
namespace {

enum : uint8_t { kAcquire = 1, kRelease = 2, kStrong = 4 };

struct Ldst {
  int slot_bytes[8] = {};  // of the registers: they may be wider than the element
  bool words = false;      // up to four elements of 4 bytes in registers of 4 bytes
  bool sign = false;       // a load extends by the sign
  uint8_t order = 0;
};

Access access_of(const Ldst& form) { return form.order & kStrong ? Access::strong : Access::plain; }

// Words to registers of their size, in all lanes: most loads of most kernels.
template <int kCount>
void words_to_registers(Warp& w, const Instr& in, const uint8_t (*data)[32]) {
  uint32_t* to[kCount];
  for (int i = 0; i < kCount; ++i) to[i] = w.at<uint32_t>(in.list[i]);
  for (int l = 0; l < kLanes; ++l) {
    uint32_t words[kCount];
    std::memcpy(words, data[l], sizeof words);
    for (int i = 0; i < kCount; ++i) to[i][l] = words[i];
  }
}

// Element i of what the lanes loaded goes to its registers, extended by sign or zero.
void to_registers(Warp& w, const Instr& in, const Ldst& form, Mask m, const uint8_t (*data)[32]) {
  if (form.words && m == kAllLanes) {
    if (in.count == 4) return words_to_registers<4>(w, in, data);
    if (in.count == 2) return words_to_registers<2>(w, in, data);
    return words_to_registers<1>(w, in, data);
  }
  for (int i = 0; i < in.count; ++i) {
    const int size = form.slot_bytes[i], bytes = in.bytes;
    uint8_t* to = w.at<uint8_t>(in.list[i]);
    if (size == bytes) {
      with_width(size, [&](auto constant) {
        for (Lanes l(m); l; ++l) std::memcpy(to + *l * size, data[*l] + i * bytes, constant);
      });
      continue;
    }
    for (Lanes l(m); l; ++l) {
      uint8_t wide[16];
      const bool sign = form.sign && data[*l][(i + 1) * bytes - 1] & 0x80;
      std::memset(wide, sign ? 0xFF : 0, sizeof wide);
      std::memcpy(wide, data[*l] + i * bytes, size_t(bytes));
      std::memcpy(to + *l * size, wide, size_t(size));
    }
  }
}

Next load(Warp& w, const Instr& in, Mask m) {
  const Ldst& form = *static_cast<const Ldst*>(in.extra);
  uint64_t address[kLanes];
  addresses(w, in, address);
  uint8_t data[kLanes][32];
  read_memory(w, in, m, address, in.bytes * in.count, &data[0][0], 32, access_of(form));
  to_registers(w, in, form, m, data);
  if (in.carry && (in.checks.asks || w.block->cluster->doubted)) load_undefined(w, in, m, address);
  if (in.overtaking.overtaken) load_late(w, in, m, address);
  if (form.order & kAcquire) acquire(w, w.block->cluster->fences);
  return w.undefined.left.empty() ? Next::go_on : Next::go_on_without;
}

Next store(Warp& w, const Instr& in, Mask m) {
  const Ldst& form = *static_cast<const Ldst*>(in.extra);
  uint64_t address[kLanes];
  addresses(w, in, address);
  uint8_t data[kLanes][32];
  for (int i = 0; i < in.count; ++i) {
    const uint8_t* from = w.at<uint8_t>(in.list[i]);
    with_width(in.bytes, [&](auto constant) {
      for (Lanes l(m); l; ++l) std::memcpy(data[*l] + i * in.bytes, from + *l * form.slot_bytes[i], constant);
    });
  }
  if (form.order & kRelease) release(w, w.block->cluster->fences);
  write_memory(w, in, m, address, in.bytes * in.count, &data[0][0], 32, access_of(form));
  if (!w.undefined.local.empty()) local_defined(w, in, m, address);
  if (asks(w, in) && in.carry) store_undefined(w, in, m, address);
  return Next::go_on;
}

// A kernel's parameters lie in a block of their own.
Next load_param(Warp& w, const Instr& in, Mask m) {
  const std::vector<uint8_t>& params = w.block->grid->launch.params;
  const size_t bytes = size_t(in.bytes) * in.count;
  if (size_t(in.offset) + bytes > params.size()) {
    raise_final(FaultKind::bounds, w, in, -1,
                "parameter bytes up to " + std::to_string(size_t(in.offset) + bytes) + " of " +
                    std::to_string(params.size()),
                "the launch passed fewer parameters");
  }
  uint8_t data[kLanes][32];
  for (Lanes l(m); l; ++l) std::memcpy(data[*l], params.data() + in.offset, bytes);
  to_registers(w, in, *static_cast<const Ldst*>(in.extra), m, data);
  return Next::go_on;
}

// The same at a computed address: a generic one (64 bits), or a place in the block (32 bits).
Next load_param_at(Warp& w, const Instr& in, Mask m) {
  const std::vector<uint8_t>& params = w.block->grid->launch.params;
  const uint64_t begin = in.address_bits == 64 ? w.block->grid->params_address : 0;
  const size_t bytes = size_t(in.bytes) * in.count;
  uint64_t address[kLanes];
  addresses(w, in, address);
  uint8_t data[kLanes][32];
  for (Lanes l(m); l; ++l) {
    const uint64_t at = address[*l] - begin;
    if (at > params.size() || at + bytes > params.size()) {
      raise_final(FaultKind::bounds, w, in, *l,
                  std::to_string(bytes) + " bytes at byte " + std::to_string(int64_t(at)) + " of " +
                      std::to_string(params.size()) + " of the parameters",
                  "an index past the end of an array among the parameters");
    }
    std::memcpy(data[*l], params.data() + at, bytes);
  }
  to_registers(w, in, *static_cast<const Ldst*>(in.extra), m, data);
  return Next::go_on;
}

// Takes the modifiers that every ld and st may have: order of memory, space, cache operators and
// hints that change no result, vector, type.
TypeInfo take_access(Decoder& d, Ldst* form) {
  const int order = d.take_one({"weak", "volatile", "relaxed", "acquire", "release", "mmio"});
  const uint8_t orders[] = {0, kStrong, kStrong, kStrong | kAcquire, kStrong | kRelease, kStrong};
  if (order >= 0) form->order = orders[order];
  d.take_one({"cta", "cluster", "gpu", "sys"});
  const int space = d.take_one({"global", "shared", "local", "param", "const", "shared::cta",
                                "shared::cluster", "param::entry", "param::func"});
  const Space spaces[] = {Space::global, Space::shared, Space::local, Space::param, Space::constant,
                          Space::shared, Space::shared, Space::param, Space::param};
  d.instr.space = space < 0 ? Space::generic : spaces[space];
  // .const variables are allocations like others.
  if (d.instr.space == Space::constant) d.instr.space = Space::global;
  d.instr.any_rank = space == 6;
  d.take("nc");
  d.take_one({"ca", "cg", "cs", "cv", "lu", "wb", "wt"});
  while (d.take_one({"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last",
                     "L1::no_allocate", "L2::cache_hint", "L2::64B", "L2::128B", "L2::256B",
                     "L2::evict_first", "L2::evict_last", "L2::evict_normal"}) >= 0) {
  }
  const int vector = d.take_one({"v2", "v4", "v8"});
  d.instr.count = uint16_t(vector < 0 ? 1 : 2 << vector);
  const TypeInfo type = d.take_type();
  d.done();
  if (type.kind == 'p' || type.bits * d.instr.count > 256) throw Unsupported{"an access of this size"};
  if (type.bits * d.instr.count > 128 && d.instr.space != Space::global && d.instr.space != Space::generic)
    throw Unsupported{"32 bytes at once outside global memory"};
  d.instr.bytes = uint16_t(type.bits / 8);
  form->sign = type.kind == 's';
  return type;
}

// The registers of a vector, or the one. An immediate counts as a register of the type's size.
void take_registers(Decoder& d, const Operand& operand, const TypeInfo& type, bool to_write, Ldst* form) {
  const std::vector<const Operand*> all = Decoder::elements(operand);
  if (all.size() != d.instr.count) throw Unsupported{"a vector of another length"};
  // Global memory is read by others: what goes there must have a value.
  const bool copies = d.instr.space != Space::global;
  std::vector<uint32_t> slots;
  for (size_t i = 0; i < all.size(); ++i) {
    form->slot_bytes[i] = std::max(d.register_bits(*all[i]), type.bits) / 8;
    slots.push_back(to_write ? d.destination(*all[i], type, true)
                    : copies ? d.carried(*all[i], type, true)
                             : d.source(*all[i], type, true));
  }
  if (to_write && copies) d.carries(all, nullptr);
  form->words = d.instr.bytes == 4 && all.size() <= 4 &&
                std::count(form->slot_bytes, form->slot_bytes + all.size(), 4) == long(all.size());
  d.instr.list = d.list(slots);
}

// Parameters of a call live in local memory, those of a kernel in its parameter block: true if it
// was one of these.
bool take_param(Decoder& d, const Operand& at) {
  if (d.instr.space != Space::param) return false;
  if (at.kind != Operand::Kind::address) throw Unsupported{"an operand that is no address"};
  if (at.reg >= 0) {
    const bool entry = d.frame().function->entry;
    if (entry) d.instr.run = load_param_at;
    if (!entry) d.instr.space = Space::local;
    take_address(d, at);
    return true;
  }
  const auto local = d.frame().params.find(at.name);
  if (local != d.frame().params.end()) {
    d.instr.space = Space::local;
    d.instr.s[3] = d.local_address(0, 64);
    d.instr.offset = local->second + at.offset;
    return true;
  }
  for (const Variable& v : d.frame().function->params) {
    if (v.name != at.name || !d.frame().function->entry) continue;
    d.instr.offset = v.offset + at.offset;
    d.instr.run = load_param;
    return true;
  }
  throw Unsupported{"parameter " + at.name};
}

void decode_ld(Decoder& d) {
  Ldst form;
  const TypeInfo type = take_access(d, &form);
  take_registers(d, d.operand(0), type, true, &form);
  d.instr.run = load;
  if (!take_param(d, d.operand(1))) take_address(d, d.operand(1));
  d.extra(form);
}

void decode_st(Decoder& d) {
  Ldst form;
  const TypeInfo type = take_access(d, &form);
  d.instr.run = store;
  if (!take_param(d, d.operand(0))) take_address(d, d.operand(0));
  if (d.instr.run != store) throw Unsupported{"a store to a kernel's parameter"};
  take_registers(d, d.operand(1), type, false, &form);
  d.extra(form);
}

// A prefetch of memory that is not there is harmless.
Next nothing(Warp&, const Instr&, Mask) { return Next::go_on; }
void decode_prefetch(Decoder& d) {
  if (d.statement().has("tensormap")) throw Unsupported{"prefetch of a tensor map"};
  d.take_one({"global", "local"});
  if (d.take_one({"L1", "L2", "L2::evict_last", "L2::evict_normal"}) < 0) throw Unsupported{"this prefetch"};
  d.done();
  take_address(d, d.operand(0));
  d.instr.run = nothing;
}

}  // namespace

std::vector<Form> ldst_forms() {
  return {{"ld", decode_ld, Family::ldst},
          {"ldu", decode_ld, Family::ldst},
          {"st", decode_st, Family::ldst},
          {"prefetch", decode_prefetch, Family::ldst},
          {"prefetchu", decode_prefetch, Family::ldst}};
}

}  // namespace gg::emu
