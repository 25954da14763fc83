// The console.

document.getElementById('app').textContent = globalThis.__DSH_IPP__ ? 'Cofferdam' : 'Cofferdam, without a token';
