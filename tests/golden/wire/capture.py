import socket,struct,sys
def varint(n):
    n&=(1<<64)-1; o=b''
    while n>127: o+=bytes([n&127|128]); n>>=7
    return o+bytes([n])
def zz(n): return varint((n<<1)^(n>>63) & ((1<<64)-1)) if n<0 else varint(n<<1)
def ld(f,b): return varint(f<<3|2)+varint(len(b))+b
def hdr(callid,client=b'0123456789abcdef',retry=0,kind=2,op=0,extra=b''):
    b=b''
    if kind is not None: b+=b'\x08'+varint(kind)
    if op is not None: b+=b'\x10'+varint(op)
    b+=b'\x18'+zz(callid)+ld(4,client)+b'\x28'+zz(retry)+extra
    return varint(len(b))+b
def frame(*p):
    b=b''.join(p); return struct.pack('>i',len(b))+b
def deli(b): return varint(len(b))+b
def ctx(user,real=None,proto='org.apache.hadoop.hdfs.protocol.ClientProtocol'):
    u=ld(1,user.encode())+(ld(2,real.encode()) if real else b'')
    return frame(hdr(-3,retry=-1),deli(ld(2,u)+ld(3,proto.encode())))
def req(callid,method,body=b'',proto='org.apache.hadoop.hdfs.protocol.ClientProtocol',ver=1,**k):
    return frame(hdr(callid,**k),deli(ld(1,method.encode())+ld(2,proto.encode())+b'\x18'+varint(ver)),deli(body))
H=b'hrpc\x09\x00\x00'; HS=b'hrpc\x09\x00\xdf'
def conv(name,*chunks,wait=1.0,port=int(sys.argv[1]) if len(sys.argv)>1 else 28020):
    s=socket.create_connection(('127.0.0.1',port)); print('##',name)
    for c in chunks:
        s.settimeout(wait); print('> ',c.hex())
        try: s.sendall(c)
        except OSError as e: print('!!',e)
        got=b''; closed=False
        try:
            while True:
                d=s.recv(65536)
                if not d: closed=True; break
                got+=d
        except socket.timeout: pass
        except OSError as e: print('!!',e); closed=True
        print('< ',got.hex(),'CLOSED' if closed else ''); print('   ',got)
    s.close()
st=ld(1,b'/')
conv('ok', H+ctx('super')+req(0,'getFileInfo',st))
conv('http get', b'GET / HTTP/1.1\r\n\r\n')
conv('http put', b'PUT /webhdfs/v1/x HTTP/1.1\r\n\r\n')
for v in (1,2,3,4,8,10,200): conv('ver%d'%v, b'hrpc'+bytes([v,0,0]))
conv('auth5', b'hrpc\x09\x00\x05')
conv('auth-81', b'hrpc\x09\x00\xaf')
conv('nocontext', H+req(0,'getFileInfo',st), ctx('super')+req(1,'getFileInfo',st))
conv('nosuchmethod', H+ctx('super')+req(0,'nope',st), req(1,'getFileInfo',st))
conv('nosuchproto', H+ctx('super')+req(0,'nope',st,proto='foo.Bar'), req(1,'getFileInfo',st))
conv('badversion', H+ctx('super')+req(0,'getFileInfo',st,ver=7), req(1,'getFileInfo',st))
conv('badbody', H+ctx('super')+req(0,'getFileInfo',b'\xff\xff\xff'), req(1,'getFileInfo',st))
conv('missing required', H+ctx('super')+req(0,'getFileInfo',b''), req(1,'getFileInfo',st))
conv('kind1', H+ctx('super')+req(0,'getFileInfo',st,kind=1), req(1,'getFileInfo',st))
conv('kind0', H+ctx('super')+req(0,'getFileInfo',st,kind=0), req(1,'getFileInfo',st))
conv('kindnone', H+ctx('super')+req(0,'getFileInfo',st,kind=None), req(1,'getFileInfo',st))
conv('kind9', H+ctx('super')+req(0,'getFileInfo',st,kind=9), req(1,'getFileInfo',st))
conv('opnone', H+ctx('super')+req(0,'getFileInfo',st,op=None), req(1,'getFileInfo',st))
conv('op1', H+ctx('super')+req(0,'getFileInfo',st,op=1), req(1,'getFileInfo',st))
conv('oob -7', H+ctx('super')+frame(hdr(-7)), req(1,'getFileInfo',st))
conv('ctx twice', H+ctx('super')+ctx('super'), req(1,'getFileInfo',st))
conv('ping', H+ctx('super')+frame(hdr(-4)), req(1,'getFileInfo',st))
conv('ping early', H+frame(hdr(-4))+ctx('super'), req(1,'getFileInfo',st))
conv('sasl unrequested', H+frame(hdr(-33),deli(b'\x10\x01')), ctx('super')+req(1,'getFileInfo',st))
conv('empty frame', H+ctx('super')+frame(b''), req(1,'getFileInfo',st))
conv('garbage header', H+ctx('super')+frame(b'\xff'*20), req(1,'getFileInfo',st))
conv('trunc header', H+ctx('super')+frame(b'\x20abc'), req(1,'getFileInfo',st))
conv('hdr only', H+ctx('super')+frame(hdr(0)), req(1,'getFileInfo',st))
conv('hdr garb reqhdr', H+ctx('super')+frame(hdr(0),b'\x05\xff\xff\xff\xff\xff'), req(1,'getFileInfo',st))
conv('neg len', H+ctx('super')+b'\xff\xff\xff\xff')
conv('huge len', H+ctx('super')+b'\x7f\xff\xff\xff')
conv('ctx garbage', H+frame(hdr(-3),b'\x05\xff\xff\xff\xff\xff'))
conv('ctx empty', H+frame(hdr(-3),b'\x00'), req(1,'getFileInfo',st))
conv('ctx wrong proto', H+ctx('super',proto='foo.Bar'), req(1,'getFileInfo',st))
conv('clientid empty', H+ctx('super')+req(0,'getFileInfo',st,client=b''))
conv('clientid 5', H+ctx('super')+req(0,'getFileInfo',st,client=b'abcde',retry=3))
conv('sasl negotiate', HS+frame(hdr(-33),deli(b'\x10\x01')), ctx('super')+req(1,'getFileInfo',st))
conv('sasl simple', HS+frame(hdr(-33),deli(b'\x10\x01')), frame(hdr(-33),deli(b'\x10\x02'+ld(4,ld(1,b'SIMPLE')+ld(2,b''))))+ctx('super')+req(1,'getFileInfo',st))
conv('sasl negotiate twice', HS+frame(hdr(-33),deli(b'\x10\x01')), frame(hdr(-33),deli(b'\x10\x01')))
conv('sasl none, context', HS+ctx('super')+req(1,'getFileInfo',st))
conv('sasl initiate kerberos', HS+frame(hdr(-33),deli(b'\x10\x02'+ld(4,ld(1,b'KERBEROS')+ld(2,b'GSSAPI')))))
conv('sasl bad state', HS+frame(hdr(-33),deli(b'\x10\x04')))
conv('sasl wrap', HS+frame(hdr(-33),deli(b'\x10\x05')))
conv('proxy ok', H+ctx('alice','svc')+req(1,'getFileInfo',st))
conv('proxy refused', H+ctx('bob','svc')+req(1,'getFileInfo',st))
conv('proxy refused nobody', H+ctx('alice','joe')+req(1,'getFileInfo',st))
conv('router state', H+ctx('super')+req(1,'getFileInfo',st,extra=ld(9,b'xyz')+b'\x40\x05'))
conv('app error', H+ctx('alice')+req(1,'mkdirs',ld(1,b'/x')+ld(2,b'\x08\xed\x03')+b'\x18\x01'))
conv('illegal', H+ctx('alice')+req(1,'getFileInfo',ld(1,b'x/y')))
